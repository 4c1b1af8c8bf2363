// Units of figures: a scale is chosen by the largest value, so that ticks are round numbers.
const KI = 1024;
const binary = (suffix) => [[KI ** 4, `TiB${suffix}`], [KI ** 3, `GiB${suffix}`], [KI ** 2, `MiB${suffix}`], [KI, `KiB${suffix}`], [1, `B${suffix}`]];

export const UNITS = {
  ratio: [[0.01, "%"]],
  bytes: binary(""),
  bytesPerSecond: binary("/s"),
  bits: [[1.25e8, "Gbit/s"], [1.25e5, "Mbit/s"], [125, "kbit/s"], [0.125, "bit/s"]],
  size: [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]],
  watts: [[1000, "kW"], [1, "W"]],
  celsius: [[1, "°C"]],
  cores: [[1, "cores"]],
  seconds: [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]],
};

export function scaleOf(unit, most) {
  const [size, word] = UNITS[unit].find(([least]) => most >= least) ?? UNITS[unit].at(-1);
  return { size, word };
}

const numbers = [0, 1, 2].map((digits) => new Intl.NumberFormat("en", { maximumFractionDigits: digits }));

// A value that was divided by the scale already, as words; what is not there is a dash.
export function words(value, { word }) {
  if (value === undefined || value === null) return "–";
  const size = Math.abs(value);
  return `${numbers[size >= 100 || word === "%" ? 0 : size >= 10 ? 1 : 2].format(value)} ${word}`;
}
