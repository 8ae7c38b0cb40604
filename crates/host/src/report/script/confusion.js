// The confusion table: how many examples of every true set got which inferred set. Every number is a button.

const MOST_SETS = 30;

/** Rows and columns ordered so that what belongs together meets on the diagonal; `null` stands for all others together. */
function arranged(truth, found) {
  const counts = new Map();
  truth.of.forEach((set, row) => {
    const key = set * 65536 + found.of[row];
    counts.set(key, (counts.get(key) ?? 0) + 1);
  });
  const size = (of, set) => of.rows[set].length;
  const rows = [...truth.sets.keys()]
    .sort((a, b) => size(truth, b) - size(truth, a) || a - b)
    .slice(0, MOST_SETS)
    .sort((a, b) => truth.sets[a].length - truth.sets[b].length || a - b);
  const partner = new Map();
  const taken = new Set();
  for (const [key] of [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0])) {
    const [row, column] = [Math.floor(key / 65536), key % 65536];
    if (!rows.includes(row) || partner.has(row) || taken.has(column)) continue;
    partner.set(row, column);
    taken.add(column);
  }
  const rest = [...found.sets.keys()].filter((set) => !taken.has(set)).sort((a, b) => size(found, b) - size(found, a) || a - b);
  const columns = [...rows.filter((row) => partner.has(row)).map((row) => partner.get(row)), ...rest].slice(0, MOST_SETS);
  const others = (shown, of) => (shown.length < of.sets.length ? [...shown, null] : shown);
  return { rows: others(rows, truth), columns: others(columns, found) };
}

function confusion(truth, found, view) {
  const { rows, columns } = arranged(truth, found);
  const place = (list, set) => (list.includes(set) ? list.indexOf(set) : list.length - 1);
  const cells = rows.map(() => columns.map(() => []));
  truth.of.forEach((set, row) => cells[place(rows, set)][place(columns, found.of[row])].push(row));
  const name = (of, set) => (set == null ? "other" : of.name(set));
  const button = (text, label, own) => lights(element("button", {
    type: "button", "aria-pressed": "false", "aria-label": label, title: label,
    onclick: () => view.pick(found, own, `${found.title}: ${label}`),
    onpointerenter: () => view.hover(own),
    onpointerleave: () => view.hover(null),
  }, text), own, view);
  const counted = (own) => `${own.length} example${own.length === 1 ? "" : "s"}`;
  const head = columns.map((set, column) => {
    const own = cells.flatMap((row) => row[column]);
    return element("th", { scope: "col" }, button(set == null ? "other" : brief(found, set, 9), `inferred ${name(found, set)}, ${counted(own)}`, own));
  });
  const body = rows.map((set, row) => {
    const total = cells[row].flat();
    const label = name(truth, set);
    return element("tr", {},
      element("th", { scope: "row" }, button(set == null ? "other" : brief(truth, set, 12), `true ${label}, ${counted(total)}`, total)),
      cells[row].map((own, column) => {
        if (!own.length) return element("td");
        const share = own.length / total.length;
        const cell = button(String(own.length), `${own.length} of ${total.length} examples of ${label} in ${name(found, columns[column])}`, own);
        // Never so dark that the number could not be read.
        cell.style.setProperty("--share", `${Math.round(8 + 44 * share)}%`);
        return element("td", {}, cell);
      }));
  });
  const table = element("table", { class: "matrix" },
    element("caption", { class: "unseen" }, `True sets against those of ${found.title}`),
    element("thead", {}, element("tr", {}, element("td"), head)),
    element("tbody", {}, body));
  roving(table, "button");
  return table;
}
