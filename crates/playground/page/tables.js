// The articles' tables: what they compute beside what was measured by the engine in this page.

const percent = (share) => `${(share * 100).toFixed(1)} %`;

function table(caption, heads, rows) {
  const made = document.createElement("table");
  made.createCaption().textContent = caption;
  const head = made.createTHead().insertRow();
  for (const text of heads) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = text;
    head.append(cell);
  }
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    for (const text of row) line.insertCell().textContent = text;
  }
  return made;
}

export function showTables(place, measure) {
  const { fragments, sends, budgets } = measure();
  const lost = fragments.map((row) => [row.fragments, percent(row.formula), percent(row.measured)]);
  const took = budgets.map((row) => [
    `${row.bps / 1000} kbit/s`,
    `${row.article_s} s`,
    row.measured_s === null ? "no end" : `${row.measured_s.toFixed(2)} s`,
  ]);
  const note = document.createElement("p");
  note.textContent = `A packet of 256 fragments is sent ${sends.toFixed(1)} times until it arrives; the article says 10.`;
  place.replaceChildren(
    table("Packets lost, where one datagram in a hundred is", ["fragments", "the article", "measured"], lost),
    note,
    table("256 KiB by the article's budget, without a burst", ["budget", "the article", "measured"], took),
  );
}
