
// The function keeps these names apart from the global names of the Vega bundle.
(() => {
  "use strict";
  const root = document.documentElement;
  const { figures, label: first, shown } = JSON.parse(document.getElementById("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const chosen = { label: first, shown };
  const views = new Map();

  function theme() {
    const style = getComputedStyle(root);
    const of = (name) => style.getPropertyValue(name).trim();
    const [ink, soft, line, grid] = ["--ink", "--soft", "--line", "--grid"].map(of);
    return {
      background: "transparent",
      axis: { labelColor: ink, titleColor: soft, domainColor: line, tickColor: soft, gridColor: grid },
      legend: { labelColor: ink },
      rule: { color: ink },
      text: { color: ink },
    };
  }

  function shownIn(name) {
    const there = new Set(figures[name].spec.data.values.map((row) => row.rule));
    return chosen.shown.filter((rule) => there.has(rule));
  }

  async function draw(name) {
    const { spec } = figures[name];
    const chart = document.getElementById(`chart-${name}`);
    views.get(name)?.finalize();
    chart.style.minWidth = `${spec.usermeta?.min_width ?? 0}px`;
    const narrow = chart.clientWidth < 420;
    const result = await vegaEmbed(chart, {
      ...spec,
      width: "container",
      params: [{ name: "label", value: chosen.label }, { name: "shown", value: shownIn(name) }],
      config: { ...spec.config, legend: { ...spec.config.legend, columns: narrow ? 2 : 3 } },
    }, {
      mode: "vega-lite",
      renderer: "svg",
      actions: false,
      ast: true, // interpret expressions, because the page forbids eval
      config: theme(),
      tooltip: { theme: dark.matches ? "dark" : "light" },
    });
    views.set(name, result);
    describe(name);
  }

  function describe(name) {
    const { alt } = figures[name];
    const chart = document.getElementById(`chart-${name}`);
    chart.setAttribute("role", "img");
    chart.setAttribute("aria-label", alt[chosen.label] ?? alt[first]);
  }

  const drawAll = () => Promise.all(Object.keys(figures).map(draw));

  function update() {
    for (const [name, { view }] of views) {
      view.signal("label", chosen.label).signal("shown", shownIn(name)).runAsync().then(() => describe(name));
    }
  }

  const selects = [...document.querySelectorAll("select")];
  for (const select of selects) {
    select.addEventListener("change", () => {
      chosen.label = Number(select.value);
      for (const other of selects) other.value = select.value;
      update();
    });
  }

  const boxes = [...document.querySelectorAll("fieldset input")];
  for (const box of boxes) {
    box.addEventListener("change", () => {
      chosen.shown = boxes.filter((one) => one.checked).map((one) => one.value);
      update();
    });
  }

  function sort(heading) {
    const ascending = heading.getAttribute("aria-sort") !== "ascending";
    for (const other of heading.parentNode.children) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const key = (row) => row.cells[heading.cellIndex].dataset.value;
    const compare = (a, b) => a - b || a.localeCompare(b); // text is not numeric: the difference is NaN
    const body = heading.closest("table").tBodies[0];
    const rows = [...body.rows].sort((a, b) => compare(key(a), key(b)) * (ascending ? 1 : -1));
    body.append(...rows);
  }
  for (const button of document.querySelectorAll("thead button")) {
    button.addEventListener("click", () => sort(button.parentNode));
  }

  const copy = document.getElementById("copy");
  copy.addEventListener("click", async () => {
    const command = document.getElementById("command");
    try {
      await navigator.clipboard.writeText(command.textContent);
      copy.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(command); // for the reader to copy
      copy.textContent = "Selected";
    }
    setTimeout(() => { copy.textContent = "Copy"; }, 2000);
  });

  root.classList.add("scripted");
  dark.addEventListener("change", drawAll);
  drawAll().catch((error) => {
    root.classList.remove("scripted"); // show the static images instead
    throw error;
  });
})();
