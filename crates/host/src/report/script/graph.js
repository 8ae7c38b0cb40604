// The composition graph: left the singletons, right what they make. Every node is a button.

const ROW = 24;
const LEFT = 110;
const RIGHT = 236;
const WIDTH = 380;
const MOST_COMPOSITIONS = 24;
const MOST_SINGLETONS = 30;

const cut = (text, most) => ([...text].length > most ? [...text].slice(0, most - 1).join("") + "…" : text);

/** The name of a set in some characters: of the members of a union the ends are kept, where names differ most often. */
function brief(found, set, most) {
  const names = found.sets[set].map(found.member);
  const whole = found.name(set);
  if (names.length < 2 || [...whole].length <= most) return cut(whole, most);
  const each = Math.max(2, Math.floor((most + 1) / names.length) - 1);
  return cut(names.map((name) => ([...name].length > each ? "…" + [...name].slice(1 - each).join("") : name)).join("∪"), most);
}

function graph(found, view) {
  const numbers = [...found.sets.keys()].filter((set) => found.sets[set].length);
  const size = (set) => found.rows[set].length;
  const bySize = (a, b) => size(b) - size(a) || a - b;
  const compositions = numbers.filter((set) => found.sets[set].length > 1).sort(bySize);
  const shown = compositions.slice(0, MOST_COMPOSITIONS);
  const alone = new Map(numbers.filter((set) => found.sets[set].length === 1).map((set) => [found.sets[set][0], set]));
  const members = new Set(shown.flatMap((set) => found.sets[set]));
  const further = [...alone.keys()].filter((member) => !members.has(member)).sort((a, b) => bySize(alone.get(a), alone.get(b)));
  const room = Math.max(0, MOST_SINGLETONS - members.size);
  further.slice(0, room).forEach((member) => members.add(member));
  const left = [...members].sort((a, b) => a - b);
  // Sets beside their members: fewer lines cross.
  const rank = (set) => found.sets[set].reduce((sum, member) => sum + left.indexOf(member), 0) / found.sets[set].length;
  shown.sort((a, b) => rank(a) - rank(b) || a - b);
  const height = ROW * Math.max(left.length, shown.length, 1) + 8;
  const y = (at, of) => ((at + 0.5) * height) / of;
  const memberY = (member) => y(left.indexOf(member), left.length);
  const largest = Math.max(1, ...numbers.map(size));
  const radius = (count) => 2.5 + 6 * Math.sqrt(count / largest);

  const edges = shown.flatMap((set, at) => found.sets[set].map((member) => {
    const [from, to] = [memberY(member), y(at, shown.length)];
    return lights(svg("path", {
      d: `M${LEFT} ${from}C${LEFT + 55} ${from} ${RIGHT - 55} ${to} ${RIGHT} ${to}`,
      stroke: found.colours[member],
      "stroke-width": 1 + (3 * size(set)) / largest,
    }), found.rows[set], view);
  }));
  const singletons = left.map((member) => {
    const set = alone.get(member);
    const count = set == null ? 0 : size(set);
    const parts = [
      svg("circle", { cx: LEFT, cy: memberY(member), r: radius(count), fill: found.colours[member] }),
      svg("text", { class: "end", x: LEFT - 14, y: memberY(member) + 4 }, cut(found.member(member), 11), " ", svg("tspan", { class: "muted" }, String(count))),
    ];
    const rows = set == null ? [] : found.rows[set];
    return node(found, `cluster ${found.member(member)}, ${count} examples`, rows, 0, memberY(member), LEFT + 10, parts, view);
  });
  const unions = shown.map((set, at) => {
    const middle = y(at, shown.length);
    const right = found.right?.[set];
    const judged = right == null ? [] : [svg("tspan", { class: right ? "good" : "bad" }, right ? " ✓" : " ✗")];
    const parts = [
      ...found.sets[set].map((member, bar) => {
        const angle = (Math.PI * bar) / found.sets[set].length;
        const [dx, dy] = [radius(size(set)) * Math.cos(angle), radius(size(set)) * Math.sin(angle)];
        return svg("path", { class: "arm", d: `M${RIGHT - dx} ${middle - dy}l${2 * dx} ${2 * dy}`, stroke: found.colours[member] });
      }),
      svg("text", { x: RIGHT + 14, y: middle + 4 }, brief(found, set, 14), " ", svg("tspan", { class: "muted" }, String(size(set))), judged),
    ];
    const verdict = right == null ? "" : right ? ", right" : ", wrong";
    return node(found, `composition ${found.name(set)}, ${size(set)} examples${verdict}`, found.rows[set], RIGHT - 12, middle, WIDTH - RIGHT + 12, parts, view);
  });
  const picture = svg("svg", { class: "graph", viewBox: `0 0 ${WIDTH} ${height}`, role: "group", "aria-label": `Clusters of ${found.title}` }, edges, singletons, unions);
  roving(picture, ".node");
  return [picture, leftOut(compositions, shown, further.length - room, found)];
}

function leftOut(compositions, shown, singletons, found) {
  const rest = compositions.slice(shown.length);
  const examples = rest.reduce((sum, set) => sum + found.rows[set].length, 0);
  const texts = [];
  if (rest.length) texts.push(`${rest.length} smaller compositions with ${examples} examples`);
  if (singletons > 0) texts.push(`${singletons} singletons in none of those drawn`);
  return texts.length ? element("p", { class: "note" }, `Left out: ${texts.join(", ")}.`) : null;
}

/** A button in a picture. */
function node(found, label, rows, x, y, width, parts, view) {
  const pick = () => view.pick(found, rows, `${found.title}: ${label}`);
  const group = svg("g", {
    class: "node", role: "button", "aria-pressed": "false", "aria-label": label,
    onclick: pick,
    onkeydown: (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      pick();
    },
    onpointerenter: () => view.hover(rows),
    onpointerleave: () => view.hover(null),
  }, svg("rect", { x, y: y - ROW / 2 + 1, width, height: ROW - 2, rx: 4 }), parts);
  return lights(group, rows, view);
}

/** Something that stands for some examples: lit if most of them are. */
function lights(node, rows, view) {
  view.redraw(() => {
    const lit = view.lit();
    const own = lit && rows.length > 0 && 2 * rows.filter((row) => lit[row]).length >= rows.length;
    node.classList.toggle("lit", Boolean(own));
    node.classList.toggle("dim", Boolean(lit) && !own);
    if (node.hasAttribute("aria-pressed")) node.setAttribute("aria-pressed", String(Boolean(own)));
  });
  return node;
}
