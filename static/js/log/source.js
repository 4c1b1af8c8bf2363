// The portal's REST of one log: pieces by byte offset, and the search in what is not loaded.
export class Source {
  constructor(url) {
    this.url = url;
    this.stream = "all";
  }

  async _get(path, query, signal) {
    const answer = await fetch(`${path}?${new URLSearchParams(query)}`, { headers: { Accept: "application/json" }, signal });
    if (answer.ok) return answer.json();
    const problem = await answer.json().catch(() => ({}));
    throw new Error(problem.detail ?? `The portal answered ${answer.status}.`);
  }

  // { parts, offset, next_offset, complete, size, lines }; a negative offset counts from the end.
  read({ offset, limit }, signal) {
    return this._get(this.url, { stream: this.stream, offset, limit, parts: 1 }, signal);
  }

  search({ text, offset }, signal) {
    return this._get(`${this.url}/search`, { stream: this.stream, q: text, offset }, signal);
  }

  download() {
    return `${this.url}?${new URLSearchParams({ stream: this.stream, format: "raw", download: 1 })}`;
  }
}
