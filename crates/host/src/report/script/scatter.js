// The points of a trial: circles for singletons, plusses for compositions. Points can be pointed at, clicked, and lassoed.

const SIDE = 400;
const MARGIN = 14;

/** Draws points; those for which `lit` says no are faint. */
function paint(canvas, found, at, lit, lasso) {
  const scale = canvas.width / SIDE;
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, SIDE, SIDE);
  const rows = [...found.of.keys()];
  // What is lit lies above the rest.
  for (const [group, alpha] of lit ? [[rows.filter((row) => !lit[row]), 0.1], [rows.filter((row) => lit[row]), 1]] : [[rows, 0.85]]) {
    context.globalAlpha = alpha;
    for (const row of group) mark(context, at(row), found.sets[found.of[row]], found.colours);
  }
  context.globalAlpha = 1;
  if (lasso?.length) {
    context.beginPath();
    lasso.forEach(([x, y], index) => (index ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.setLineDash([5, 4]);
    context.lineWidth = 1.5;
    context.strokeStyle = getComputedStyle(canvas).color;
    context.stroke();
    context.setLineDash([]);
  }
}

function mark(context, [x, y], set, colours) {
  if (set.length < 2) {
    context.beginPath();
    context.arc(x, y, set.length ? 4.5 : 2, 0, 2 * Math.PI);
    context.fillStyle = set.length ? colours[set[0]] : "#888";
    context.fill();
    return;
  }
  set.forEach((member, bar) => {
    const angle = (Math.PI * bar) / set.length;
    const [dx, dy] = [6 * Math.cos(angle), 6 * Math.sin(angle)];
    context.beginPath();
    context.moveTo(x - dx, y - dy);
    context.lineTo(x + dx, y + dy);
    context.lineWidth = 2.6;
    context.strokeStyle = colours[member];
    context.stroke();
  });
}

/** Whether a point is within a polygon: a ray from it crosses the border an odd number of times. */
function within([x, y], polygon) {
  let inside = false;
  polygon.forEach(([ax, ay], at) => {
    const [bx, by] = polygon[(at || polygon.length) - 1];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  });
  return inside;
}

function blank(label) {
  const size = SIDE * Math.min(2, window.devicePixelRatio || 1);
  return element("canvas", { class: "points", role: "img", "aria-label": label, width: size, height: size });
}

const onCanvas = (place) => (row) => place(row).map((share) => MARGIN + share * (SIDE - 2 * MARGIN));

/** A picture that only shows. */
function thumbnail(found, place, label) {
  const canvas = blank(label);
  paint(canvas, found, onCanvas(place), null);
  return canvas;
}

/** A picture that can be asked: tells `view` what is pointed at, and draws what `view` lights. */
function scatter(found, place, label, view) {
  const canvas = blank(label);
  const at = onCanvas(place);
  const rows = [...found.of.keys()];
  let lasso = null;
  const draw = () => paint(canvas, found, at, view.lit(), lasso);
  const where = (event) => {
    const box = canvas.getBoundingClientRect();
    return [((event.clientX - box.left) * SIDE) / box.width, ((event.clientY - box.top) * SIDE) / box.height];
  };
  const nearest = ([x, y]) => {
    let best = null;
    let least = 12;
    for (const row of rows) {
      const [px, py] = at(row);
      const distance = Math.hypot(px - x, py - y);
      if (distance < least) [best, least] = [row, distance];
    }
    return best;
  };
  canvas.addEventListener("pointerdown", (event) => {
    lasso = [where(event)];
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (lasso) {
      lasso.push(where(event));
      draw();
    } else {
      view.point(found, nearest(where(event)));
    }
  });
  canvas.addEventListener("pointerup", (event) => {
    const drawn = lasso ?? [];
    lasso = null;
    const [end] = [where(event)];
    const length = drawn.reduce((far, [x, y]) => Math.max(far, Math.hypot(x - end[0], y - end[1])), 0);
    if (length > 8) {
      const inside = rows.filter((row) => within(at(row), drawn));
      view.pick(found, inside, `${inside.length} examples inside the lasso`);
    } else {
      const row = nearest(end);
      if (row == null) view.clear();
      else view.pickSet(found, found.of[row]);
    }
    draw();
  });
  canvas.addEventListener("pointercancel", () => {
    lasso = null;
    draw();
  });
  canvas.addEventListener("pointerleave", () => view.point(found, null));
  view.redraw(draw);
  return canvas;
}
