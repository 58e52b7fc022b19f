// What the playground and the live view draw with: colours, cells of a map, a curve.

const NAMES = ["ink", "soft", "line", "slice", "again", "repair", "ack", "request", "lost", "limit", "empty"];

export const CELL = 9;

// The colours of the theme, as they are now.
export function colors() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// A canvas of this size in points, sharp on any screen. Returns its drawing context, with an empty picture.
export function fit(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.style.height = `${height}px`;
    [canvas.width, canvas.height] = [wide, high];
  }
  const at = canvas.getContext("2d");
  at.setTransform(scale, 0, 0, scale, 0, 0);
  at.clearRect(0, 0, width, height);
  return at;
}

// One cell of a map: filled, or a frame for what is on its way.
export function drawCell(at, left, top, color, isFrame) {
  at.fillStyle = color;
  at.fillRect(left, top, CELL - 2, CELL - 2);
  if (isFrame) at.clearRect(left + 1.5, top + 1.5, CELL - 5, CELL - 5);
}

// A curve over all of the width: the values of `count` moments, the last at the right.
export function drawCurve(at, values, { count, most, width, height, color, isFilled }) {
  if (values.length === 0) return;
  const x = (i) => width - ((values.length - 1 - i) / Math.max(1, count - 1)) * width;
  const y = (value) => height - 1 - (Math.min(value, most) / (most || 1)) * (height - 2);
  at.strokeStyle = color;
  at.lineWidth = 1.5;
  at.lineJoin = "round";
  at.beginPath();
  values.forEach((value, i) => (i === 0 ? at.moveTo(x(i), y(value)) : at.lineTo(x(i), y(value))));
  at.stroke();
  if (isFilled) {
    at.lineTo(width, height);
    at.lineTo(x(0), height);
    at.closePath();
    at.globalAlpha = 0.14;
    at.fillStyle = color;
    at.fill();
    at.globalAlpha = 1;
  }
  at.lineWidth = 1;
}
