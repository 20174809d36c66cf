// Draws the graph of a plan from the list of its steps, laid out by dagre, and keeps its states up to date.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  if (typeof dagre === "undefined") return;
  // The layout takes seconds for more, and nobody could read it.
  const MOST = 400;
  let box = null;
  const nodes = new Map();
  const edges = [];
  let drawn = "";

  const make = (name, attributes, text) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
  const steps = () => [...document.querySelectorAll(".step[data-path]")];

  function draw() {
    const list = steps();
    const shape = list.map((step) => `${step.dataset.path}<${step.dataset.uses}`).join(";");
    if (shape === drawn) return;
    drawn = shape;
    nodes.clear();
    edges.length = 0;
    box.replaceChildren();
    if (!list.length) return;
    if (list.length > MOST) {
      box.textContent = `${list.length} steps are too many for a graph; the list says the same.`;
      return;
    }
    const graph = new dagre.graphlib.Graph();
    graph.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 30, marginx: 14, marginy: 14 });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const step of list) {
      const label = short(step.dataset.label, 30);
      const kind = short(`${step.dataset.path} ${step.dataset.kind}`, 24);
      graph.setNode(step.dataset.path, { label, kind, width: Math.max(70, label.length * 7.3 + 18, kind.length * 5.6 + 18), height: 40 });
    }
    for (const step of list) {
      for (const used of step.dataset.uses.split(" ").filter((each) => each && graph.hasNode(each))) graph.setEdge(used, step.dataset.path, { kind: "uses" });
      const within = step.dataset.within;
      if (within && graph.hasNode(within) && !graph.hasEdge(within, step.dataset.path)) graph.setEdge(within, step.dataset.path, { kind: "within" });
    }
    dagre.layout(graph);
    const size = graph.graph();
    const svg = make("svg", { viewBox: `0 0 ${size.width} ${size.height}`, width: size.width, height: size.height, role: "img", "aria-label": "The plan as a graph; the list beside it says the same." });
    const defs = make("defs", {});
    const marker = make("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" });
    marker.append(make("path", { d: "M0 0 L8 4 L0 8 z", class: "arrow" }));
    defs.append(marker);
    svg.append(defs);
    for (const each of graph.edges()) {
      const { points, kind } = graph.edge(each);
      const line = make("path", { d: points.map(({ x, y }, number) => `${number ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join(" "), class: `edge ${kind}`, "marker-end": "url(#arrow)" });
      edges.push({ from: each.v, to: each.w, line });
      svg.append(line);
    }
    for (const step of list) {
      const path = step.dataset.path;
      const { x, y, width, height, label, kind } = graph.node(path);
      const group = make("g", { class: "node", transform: `translate(${(x - width / 2).toFixed(1)} ${(y - height / 2).toFixed(1)})` });
      group.append(make("rect", { width, height }), make("text", { x: 9, y: 17 }, label), make("text", { x: 9, y: 32, class: "kind" }, kind), make("title", {}, step.dataset.label));
      group.addEventListener("click", () => { step.scrollIntoView({ block: "center" }); step.querySelector("summary, a")?.focus(); });
      nodes.set(path, group);
      svg.append(group);
    }
    box.append(svg);
  }

  function colour() {
    for (const step of steps()) {
      const node = nodes.get(step.dataset.path);
      if (node && node.dataset.state !== step.dataset.state) node.dataset.state = step.dataset.state;
    }
  }

  // A plan that is still being written has no graph yet, and each check of an edited one brings a new box.
  function refresh() {
    const now = document.querySelector("#graph");
    if (now !== box) { box = now; drawn = ""; }
    if (box) { draw(); colour(); }
  }
  document.addEventListener("console:changed", refresh);
  document.addEventListener("console:flow", ({ detail: flow }) => {
    for (const [path, node] of nodes) node.classList.toggle("in-flow", flow.has(path));
    for (const { from, to, line } of edges) line.classList.toggle("in-flow", flow.has(from) && flow.has(to));
  });
  refresh();
})();
