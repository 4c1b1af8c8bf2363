// What is drawn: which series make a chart, and which lines of it can still be told apart.
export const PANELS = [
  { id: "gpu", title: "GPU busy", names: ["gpu_utilization_ratio"], unit: "ratio", fold: "mean", full: 1, isTall: true },
  { id: "gpu-memory", title: "GPU memory", names: ["gpu_memory_used_bytes"], cap: "gpu_memory_total_bytes", unit: "bytes", fold: "mean" },
  { id: "power", title: "GPU power", names: ["gpu_power_watts"], unit: "watts", fold: "sum" },
  { id: "temperature", title: "GPU temperature", names: ["gpu_temperature_celsius"], unit: "celsius", fold: "max" },
  { id: "cpu", title: "CPU busy", names: ["cpu_utilization_ratio"], unit: "ratio", fold: "mean", full: 1 },
  { id: "cores", title: "Cores used by the job", names: ["cpu_cores_used"], unit: "cores", fold: "sum" },
  { id: "memory", title: "Memory", names: ["memory_used_bytes"], cap: "memory_total_bytes", unit: "bytes", fold: "mean" },
  { id: "network", title: "Network", names: ["nic_receive_bytes_per_second", "nic_transmit_bytes_per_second"], labels: ["Receive", "Send"], unit: "bits", fold: "sum" },
  { id: "disk", title: "Disk", names: ["disk_read_bytes_per_second", "disk_write_bytes_per_second"], labels: ["Read", "Write"], unit: "bytesPerSecond", fold: "sum" },
  { id: "latency", title: "Disk latency", names: ["disk_latency_seconds"], unit: "seconds", fold: "max" },
];
export const GPU_BUSY = PANELS[0].names[0];
const MOST_LINES = 8;
const FOLDED = { mean: "mean", sum: "sum", max: "highest" };

// `x{gpu="0",rank="1"}` → { name: "x", gpu: 0, rank: 1 }; without a label it is 0.
export function parse(key) {
  const [name, labels = ""] = key.split("{");
  const found = { key, name, gpu: 0, rank: 0 };
  for (const [, label, value] of labels.matchAll(/(\w+)="([^"]*)"/g)) found[label] = Number(value);
  return found;
}

const by = (items, name) => items.reduce((map, item) => map.set(item[name], [...(map.get(item[name]) ?? []), item]), new Map());
const ordered = (items) => items.sort((a, b) => a.rank - b.rank || a.gpu - b.gpu);

// The lines of a panel: { label, keys, fold, band? }, at most eight; `node` is the picked one.
export function linesOf(panel, keys, node) {
  const items = ordered(keys.map(parse).filter(({ name, rank }) => panel.names.includes(name) && (node === undefined || rank === node)));
  if (!items.length) return [];
  const { fold } = panel;
  const line = (label, of, more = {}) => ({ label, fold, keys: of.map(({ key }) => key), ...more });
  if (panel.names.length > 1) {
    return panel.names.map((name, index) => line(panel.labels[index], items.filter((item) => item.name === name))).filter((one) => one.keys.length);
  }
  const ranks = by(items, "rank");
  const isGpu = panel.names[0].startsWith("gpu_");
  if (items.length <= MOST_LINES) {
    return items.map((item) => line(labelOf(item, isGpu, ranks.size > 1), [item]));
  }
  const what = `${FOLDED[fold]} of ${isGpu ? "its GPUs" : "all"}`;
  if (ranks.size > 1 && ranks.size <= MOST_LINES) {
    return [...ranks].map(([rank, of]) => line(`Node ${rank}`, of, { note: what }));
  }
  const all = isGpu ? `${items.length} GPUs` : `${items.length} nodes`;
  return [line(`All ${all}`, items, { note: FOLDED[fold], band: fold !== "sum" })];
}

function labelOf({ rank, gpu }, isGpu, hasRanks) {
  const node = hasRanks ? `Node ${rank}` : "";
  if (!isGpu) return node || "This node";
  return node ? `${node}, GPU ${gpu}` : `GPU ${gpu}`;
}
