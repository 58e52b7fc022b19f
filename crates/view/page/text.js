// Numbers as people read them.

export function bytes(value) {
  if (value == null) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${digits(value, unit > 0)} ${units[unit]}`;
}

export function rate(bps) {
  if (bps == null) return "–";
  const units = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"];
  let unit = 0;
  while (bps >= 1000 && unit < units.length - 1) [bps, unit] = [bps / 1000, unit + 1];
  return `${digits(bps, unit > 0)} ${units[unit]}`;
}

export function delay(ms) {
  if (ms == null) return "–";
  return ms < 1000 ? `${digits(ms, ms < 10)} ms` : `${(ms / 1000).toFixed(2)} s`;
}

export function since(ms) {
  const s = Math.floor(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${String(s % 60).padStart(2, "0")} s`;
  return `${Math.floor(s / 3600)} h ${String(Math.floor(s / 60) % 60).padStart(2, "0")} min`;
}

export const percent = (share) => `${digits(share * 100, share < 0.1)} %`;
export const count = (value) => value.toLocaleString("en").replaceAll(",", "\u2009");

function digits(value, isFine) {
  return isFine && value < 100 ? value.toFixed(1) : String(Math.round(value));
}
