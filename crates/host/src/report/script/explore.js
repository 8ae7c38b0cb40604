// What can be chosen, what is lit, and drawing all of it again.

function explore(root, { data: all, start }) {
  const state = { data: 0, trial: 0, plane: "principal", methods: null, picked: null, hovered: null, focus: null, order: { by: "margin", sign: 1 } };
  let redraws = [];
  const status = element("p", { class: "status", role: "status" });
  const panels = element("div");
  const list = element("div");
  const controls = element("form", { class: "controls", onsubmit: (event) => event.preventDefault() });

  const data = () => all[state.data];
  const trial = () => unpack(data().trials[state.trial]);
  const names = () => [...new Set(data().trials.flatMap((trial) => trial.methods.map((method) => method.name)))];
  const chosen = () => trial().methods.filter((method) => state.methods.has(method.title));
  const redraw = () => redraws.forEach((draw) => draw());

  const view = {
    redraw: (draw) => redraws.push(draw),
    /** Which rows are lit, as flags; nothing if none has to be told from the others. */
    lit: () => state.hovered ?? state.picked,
    hover(rows) {
      const flags = rows && flagged(rows);
      if (!flags && !state.hovered) return;
      state.hovered = flags;
      redraw();
    },
    /** Somebody points at an example: its cluster lights up, and what it is is told. */
    point(found, row) {
      const set = row == null ? null : found.of[row];
      if (view.pointed === `${found.title} ${row}`) return;
      view.pointed = `${found.title} ${row}`;
      view.hover(set == null ? null : found.rows[set]);
      status.textContent = row == null ? said() : described(found, row);
    },
    pick(found, rows, text) {
      state.picked = flagged(rows);
      state.focus = found;
      state.text = text;
      state.hovered = null;
      status.textContent = text;
      redraw();
      listed();
    },
    pickSet: (found, set) => view.pick(found, found.rows[set], `${found.title}: cluster ${found.name(set)}, ${found.rows[set].length} examples`),
    clear() {
      Object.assign(state, { picked: null, hovered: null, text: null });
      status.textContent = said();
      redraw();
      listed();
    },
  };
  const said = () => state.text ?? (state.trial === ALL ? "A trial is opened by its button." : "Point at a cluster, click it, or draw a lasso around points.");
  const flagged = (rows) => {
    const flags = new Uint8Array(trial().ids.length);
    rows.forEach((row) => (flags[row] = 1));
    return flags;
  };
  const described = (found, row) => [
    `id ${trial().ids[row]}`,
    trial().truth && `truly ${trial().truth.name(trial().truth.of[row])}`,
    found !== trial().truth && `${found.title}: ${found.name(found.of[row])}`,
    found.distance && `distance ${shortly(found.distance(row))}`,
    found.margin && `margin ${shortly(found.margin(row))}`,
  ].filter(Boolean).join(" · ");

  /** The table of what is picked; distances and margins are of the method in which it was. */
  function listed(sortedBy) {
    list.replaceChildren();
    if (state.trial === ALL || !state.picked) return;
    const rows = [...state.picked.keys()].filter((row) => state.picked[row]);
    const focus = state.focus === trial().truth ? chosen()[0] : state.focus;
    const note = focus?.margin && `Distance and margin are those of ${focus.title}; a margin below 0 means that another cluster's mean is nearer.`;
    const notes = [note, ...trial().media.map((media) => media.note && `Column ${media.kind}: ${media.note}.`)].filter(Boolean);
    list.append(element("h3", {}, `Examples: ${state.text}`), ...notes.map((note) => element("p", { class: "note" }, note)), ...examples(trial(), rows, chosen(), focus, state.order, listed));
    if (sortedBy) list.querySelector(`[data-sort="${CSS.escape(sortedBy)}"]`)?.focus();
  }

  /** The planes that are drawn of somebody's clusters. */
  function planes(found) {
    const own = [found.own, `what separates the sets of ${found.title}`];
    const principal = [trial().plane, "principal components"];
    const wanted = { principal: [principal], own: [own[0] ? own : principal], both: [principal, own] }[state.plane];
    return wanted.filter(([place]) => place);
  }

  const figure = (found, ...content) => element("figure", { class: found === trial().truth && "truth" },
    element("figcaption", {}, element("b", {}, found.title), element("span", { class: "muted" }, [found.note, found.counts].filter(Boolean).join(" · "))), ...content);

  function drawTrial() {
    const everybody = [trial().truth, ...chosen()].filter(Boolean);
    panels.append(element("h3", {}, "Where the points lie"));
    if (trial().missing) {
      panels.append(element("p", { class: "note" }, `No picture of the points, and no comparison with the truth: ${trial().missing}.`));
    } else {
      const some = trial().ids.length < trial().n ? ` ${trial().ids.length} of ${trial().n} examples are shown.` : "";
      panels.append(
        element("p", { class: "note" }, `Principal components hold ${trial().share} % of the variance. Circles belong to singletons, plusses to compositions: each bar has the colour of one member.${some}`),
        element("div", { class: state.plane === "both" ? "figures wide" : "figures small" }, everybody.map((found) => figure(found, element("div", { class: "planes" },
          planes(found).map(([place, label]) => scatter(found, place, `${found.title}, ${label}, ${found.counts}`, view)))))));
    }
    panels.append(
      element("h3", {}, "Which singletons make which cluster"),
      element("p", { class: "note" }, `Left the singletons, right what they make; grey is the number of examples.${chosen().some((found) => found.right) ? " ✓ means that most examples of a composition truly are that union, if singletons are matched one to one with true ones." : ""}`),
      element("div", { class: "figures" }, everybody.map((found) => element("figure", { class: found === trial().truth && "truth" },
        element("figcaption", {}, element("b", {}, found.title), element("span", { class: "muted" }, found.verdict ?? "")), graph(found, view)))));
    if (trial().truth) {
      panels.append(
        element("h3", {}, "True sets against inferred sets"),
        element("p", { class: "note" }, "Rows are true sets, columns inferred ones; what shares the most examples meets on the diagonal."),
        element("div", { class: "figures fit" }, chosen().map((found) => element("figure", {}, element("figcaption", {}, element("b", {}, found.title)), element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Confusion table of ${found.title}` }, confusion(trial().truth, found, view))))));
    }
  }

  /** All trials of a data set: one row of pictures for everybody. */
  function drawTrials() {
    const trials = data().trials.map(unpack);
    const titles = [trials.some((trial) => trial.truth) && "Truth", ...names().filter((name) => state.methods.has(name))].filter(Boolean);
    for (const title of titles) {
      panels.append(element("h3", {}, title), element("div", { class: "figures tiny" }, trials.map((trial, at) => {
        const found = title === "Truth" ? trial.truth : trial.methods.find((method) => method.title === title);
        const place = found && ((state.plane !== "principal" && found.own) || trial.plane);
        if (!place) return null;
        const look = element("button", { type: "button", onclick: () => go({ trial: at }) }, `trial ${trial.number}`);
        return element("figure", {}, element("figcaption", {}, look, element("span", { class: "muted" }, found.note ?? "")), thumbnail(found, place, `${title}, trial ${trial.number}`));
      })));
    }
  }

  function draw() {
    redraws = [];
    panels.replaceChildren();
    if (state.trial === ALL) drawTrials();
    else drawTrial();
    status.textContent = said();
    redraw();
    listed();
  }

  /** Another choice; what was picked belongs to the old one unless only methods or planes change. */
  function go(change) {
    Object.assign(state, change);
    if ("data" in change || "trial" in change) Object.assign(state, { picked: null, hovered: null, focus: null, text: null });
    draw();
    offer();
  }

  const select = (key, label, options, value, change) => element("div", { class: "field" }, element("label", { for: `choose-${key}` }, label),
    element("select", { id: `choose-${key}`, "data-key": key, onchange: (event) => change(event.target.value) }, options.map(([key, text]) => element("option", { value: key, selected: String(key) === String(value) }, text))));

  function offer() {
    const focused = controls.contains(document.activeElement) && document.activeElement.dataset.key;
    const trials = data().trials.map((trial, at) => [at, `trial ${trial.number}`]);
    if (trials.length > 1) trials.push([ALL, `all ${trials.length}, side by side`]);
    const box = (name) => element("label", { class: "box" }, element("input", {
      type: "checkbox", checked: state.methods.has(name), "data-key": `method ${name}`,
      onchange: (event) => {
        if (event.target.checked) state.methods.add(name);
        else state.methods.delete(name);
        go({});
      },
    }), name);
    const everything = () => view.pick(chosen()[0] ?? trial().truth, trial().ids.map((_, row) => row), "all examples");
    controls.replaceChildren(
      ...(all.length > 1 ? [select("data", "Data", all.map((data, at) => [at, data.heading]), state.data, (value) => go({ data: Number(value), trial: 0 }))] : []),
      select("trial", "Trial", trials, state.trial, (value) => go({ trial: Number(value) })),
      select("plane", "Plane", [["principal", "principal components"], ["own", "what separates each method's sets"], ["both", "both"]], state.plane, (value) => go({ plane: value })),
      element("fieldset", {}, element("legend", {}, "Methods"), names().map(box)),
      ...(state.trial === ALL ? [] : [
        element("button", { type: "button", "data-key": "list", onclick: everything }, "List all examples"),
        element("button", { type: "button", "data-key": "clear", onclick: view.clear }, "Clear (Esc)"),
      ]),
      ...(data().leftOut ? [element("p", { class: "note" }, `${data().leftOut} further trials are left out to keep the page small; --cell DATA/TRIAL chooses others.`)] : []));
    if (focused) controls.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  document.addEventListener("keydown", (event) => event.key === "Escape" && view.clear());
  state.methods = new Set(start);
  root.append(controls, status, panels, list);
  root.hidden = false;
  document.getElementById("static").hidden = true;
  draw();
  offer();
}

const ALL = -1;
const held = JSON.parse(document.getElementById("data").textContent);
if (held.data.length) explore(document.getElementById("explore"), held);
