// The controls, and the text of a scene: the query of the address is the one place where a scene is kept.

export const SENDERS = [
  ["haulier", "haulier/1"],
  ["article", "the article's, with its burst"],
  ["article-paced", "the article's, without the burst"],
  ["fragments", "fragments of one large packet"],
  ["slow-start", "slow start (TCP CUBIC, a model)"],
];

const kib = (bytes) => (bytes < 1048576 ? `${Math.round(bytes / 1024)} KiB` : `${bytes / 1048576} MiB`);

// Each slider: the values it stands at, and how one is shown.
const STEPS = {
  rate: [[0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500].map((mbit) => mbit * 1e6), (v) => `${v / 1e6} Mbit/s`],
  rtt: [[0, 2, 5, 10, 20, 30, 50, 80, 100, 150, 200, 250, 300, 400, 600], (v) => `${v} ms`],
  loss: [[0, 0.1, 0.5, 1, 2, 5, 10, 20, 30, 40, 50, 60, 70], (v) => `${v} %`],
  burst: [[1, 2, 4, 8, 16, 32], (v) => (v < 2 ? "each alone" : `${v} on average`)],
  queue: [[4, 8, 16, 32, 64, 128, 256, 512, 1024].map((k) => k * 1024), kib],
  jitter: [[0, 2, 5, 10, 20, 50, 100, 200], (v) => `${v} ms`],
  bytes: [[16, 32, 64, 128, 256, 512, 1024].map((k) => k * 1024), kib],
};

const nearest = (values, value) =>
  values.reduce((best, v, i) => (Math.abs(v - value) < Math.abs(values[best] - value) ? i : best), 0);

export class Controls {
  constructor(form, changed) {
    this.form = form;
    this.values = {};
    const senders = form.querySelector("#senders");
    for (const [name, text] of SENDERS) {
      const label = document.createElement("label");
      label.className = "check";
      label.innerHTML = `<input type="checkbox" name="senders" value="${name}"><span></span>`;
      label.querySelector("span").textContent = text;
      senders.append(label);
    }
    for (const [name, [values]] of Object.entries(STEPS)) {
      const input = form.elements[name];
      Object.assign(input, { min: 0, max: values.length - 1, step: 1 });
      input.addEventListener("input", () => {
        this.values[name] = values[Number(input.value)];
        this.show(name);
        changed();
      });
    }
    senders.addEventListener("change", (event) => {
      if (this.senders().length === 0) event.target.checked = true;
      changed();
    });
    form.elements.seed.addEventListener("input", changed);
    form.elements.without.addEventListener("change", changed);
    form.elements.budget.addEventListener("change", changed);
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  senders() {
    return [...this.form.querySelectorAll("[name=senders]:checked")].map((box) => box.value);
  }

  // A value that no step has is kept as it is, until its slider is moved.
  show(name) {
    const [values, text] = STEPS[name];
    const input = this.form.elements[name];
    const shown = text(this.values[name]);
    input.value = nearest(values, this.values[name]);
    input.setAttribute("aria-valuetext", shown);
    input.closest("label").querySelector("output").textContent = shown;
  }

  // Takes over a whole scene, as the engine writes it.
  read(text) {
    const query = new URLSearchParams(text);
    for (const name of Object.keys(STEPS)) {
      this.values[name] = Number(query.get(name));
      this.show(name);
    }
    const senders = query.get("senders").split(",");
    this.form.querySelectorAll("[name=senders]").forEach((box) => (box.checked = senders.includes(box.value)));
    this.form.elements.seed.value = query.get("seed");
    this.form.elements.without.value = query.get("without") ?? "";
    this.keep(this.form.elements.budget, query.get("budget") ?? "");
    this.lasts = query.get("lasts");
  }

  // A value that no option has becomes one.
  keep(select, value) {
    select.value = value;
    if (select.value !== value) select.add(new Option(`${value / 1000} kbit/s`, value, false, true));
  }

  write() {
    const values = Object.entries(this.values).map(([name, value]) => `${name}=${value}`);
    const without = this.form.elements.without.value;
    const rest = [`seed=${Math.max(0, Math.floor(Number(this.form.elements.seed.value)) || 0)}`];
    const budget = this.form.elements.budget.value;
    if (budget) rest.push(`budget=${budget}`);
    if (without) rest.push(`without=${without}`);
    return [`senders=${this.senders().join(",")}`, ...values, ...rest, `lasts=${this.lasts}`].join("&");
  }
}
