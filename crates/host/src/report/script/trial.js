// A trial as the page holds it, unpacked when it is first looked at.

const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
const numbers = (text) => new Uint16Array(bytes(text).buffer);

const NONE = 65535;

/** Numbers between their least and their greatest, by row; NaN where there is none. */
function measure(packed) {
  if (!packed) return null;
  const codes = numbers(packed.of);
  const unit = (packed.high - packed.low) / (NONE - 1);
  return (row) => (codes[row] === NONE ? NaN : packed.low + unit * codes[row]);
}

/** Coordinates between 0 and 1, up being up. */
function plane(packed) {
  if (!packed) return null;
  const codes = numbers(packed);
  return (row) => [codes[2 * row] / NONE, 1 - codes[2 * row + 1] / NONE];
}

/** What somebody made of the examples: a method, or whoever knows the truth. */
function clustering(packed, title) {
  const of = (packed.sets.length > 256 ? numbers : bytes)(packed.of);
  const rows = packed.sets.map(() => []);
  of.forEach((set, row) => rows[set].push(row));
  const member = (number) => packed.names[number] ?? String(number);
  return {
    title,
    sets: packed.sets,
    of,
    rows,
    counts: packed.counts,
    note: packed.note,
    verdict: packed.verdict,
    right: packed.right,
    colours: packed.colours,
    own: plane(packed.own),
    distance: measure(packed.distance),
    margin: measure(packed.margin),
    member,
    name: (set) => packed.sets[set].map(member).join("∪") || "none",
  };
}

function unpack(packed) {
  if (packed.unpacked) return packed.unpacked;
  const { ids, n, number, share, missing, media = [] } = packed;
  packed.unpacked = {
    ids, n, number, share, missing, media,
    plane: plane(packed.plane),
    truth: packed.truth && clustering(packed.truth, "Truth"),
    methods: packed.methods.map((method) => clustering(method, method.name)),
    pixels: packed.pixels && { side: packed.pixels.side, of: bytes(packed.pixels.of) },
  };
  return packed.unpacked;
}
