// The examples that are picked: what they are, what everybody made of them, and how clearly.

const PAGE = 60;

const shortly = (value) => (Number.isNaN(value) ? "–" : Number(value.toPrecision(3)).toString());

/** The columns: a title, the text of a row, and what to sort by. */
function columnsOf(trial, chosen, focus) {
  const columns = [];
  for (const media of trial.media) columns.push({ title: media.kind, cell: (row) => medium(media, row, trial.ids[row]) });
  if (trial.pixels && !trial.media.some((media) => media.kind === "image")) columns.push({ title: "picture", cell: (row) => portrait(trial, row) });
  columns.push({ title: "id", cell: (row) => trial.ids[row], key: (row) => trial.ids[row] });
  const set = (found, title) => ({ title, cell: (row) => found.name(found.of[row]), key: (row) => found.of[row] });
  if (trial.truth) columns.push(set(trial.truth, "truth"));
  chosen.forEach((found) => columns.push(set(found, found.title)));
  const number = (of, title) => ({ title, number: true, cell: (row) => shortly(of(row)), key: (row) => of(row) });
  if (focus?.distance) columns.push(number(focus.distance, "distance"));
  if (focus?.margin) columns.push(number(focus.margin, "margin"));
  return columns;
}

function medium(media, row, id) {
  if (media.of[row] == null) return "–";
  const address = media.base + media.of[row];
  return media.kind === "audio"
    ? element("audio", { controls: true, preload: "none", src: address, "aria-label": `sound of ${id}` })
    : element("img", { class: "portrait", loading: "lazy", src: address, alt: `picture of ${id}` });
}

function portrait(trial, row) {
  const { side, of } = trial.pixels;
  const canvas = element("canvas", { class: "portrait", width: side, height: side, role: "img", "aria-label": `picture of ${trial.ids[row]}` });
  const context = canvas.getContext("2d");
  const image = context.createImageData(side, side);
  for (let at = 0; at < side * side; at += 1) {
    const ink = 255 - of[row * side * side + at];
    image.data.set([ink, ink, ink, 255], 4 * at);
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

const compared = (a, b) => (typeof a === "string" ? a.localeCompare(b, undefined, { numeric: true }) : Number.isNaN(a) - Number.isNaN(b) || a - b);

/** The table of some rows. `order` is kept between tables: by which column, and in which direction. */
function examples(trial, rows, chosen, focus, order, again) {
  const columns = columnsOf(trial, chosen, focus);
  const by = columns.find((column) => column.title === order.by && column.key) ?? columns.find((column) => column.title === "id");
  const sorted = [...rows].sort((a, b) => order.sign * compared(by.key(a), by.key(b)));
  const head = columns.map((column) => {
    if (!column.key) return element("th", { scope: "col" }, column.title);
    const active = column === by;
    const sort = () => {
      order.sign = active ? -order.sign : 1;
      order.by = column.title;
      again(column.title);
    };
    return element("th", { scope: "col", "aria-sort": active ? (order.sign > 0 ? "ascending" : "descending") : "none", class: column.number && "number" },
      element("button", { type: "button", "data-sort": column.title, onclick: sort }, column.title, active ? (order.sign > 0 ? " ▲" : " ▼") : ""));
  });
  const body = element("tbody");
  const more = element("button", { type: "button", class: "more" });
  let shown = 0;
  const show = () => {
    for (const row of sorted.slice(shown, shown + PAGE)) {
      body.append(element("tr", {}, columns.map((column) => element("td", { class: column.number && "number" }, column.cell(row)))));
    }
    shown = Math.min(sorted.length, shown + PAGE);
    more.textContent = `Show more (${shown} of ${sorted.length})`;
    more.hidden = shown >= sorted.length;
  };
  more.addEventListener("click", show);
  show();
  const table = element("table", { class: "examples" }, element("caption", { class: "unseen" }, "Picked examples"), element("thead", {}, element("tr", {}, head)), body);
  return [element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Picked examples" }, table), more];
}
