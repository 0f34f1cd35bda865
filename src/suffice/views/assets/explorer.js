"use strict";
// Exact posteriors in the page: message passing on the junction tree that the page carries.
(() => {
  const byId = (id) => document.getElementById(id);
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((part) => { part.open = true; });
  });
  const source = byId("network");
  if (!source) return;
  const net = JSON.parse(source.textContent);

  // Cell numbers of a sub-scope for every cell of a scope; the last variable runs fastest.
  const project = (scope, part) => {
    const steps = new Array(scope.length).fill(0);
    let step = 1;
    for (let k = part.length - 1; k >= 0; k -= 1) {
      steps[scope.indexOf(part[k])] = step;
      step *= net.cards[part[k]];
    }
    const size = scope.reduce((total, v) => total * net.cards[v], 1);
    const cells = new Int32Array(size);
    const digits = new Array(scope.length).fill(0);
    let at = 0;
    for (let cell = 0; cell < size; cell += 1) {
      cells[cell] = at;
      for (let k = scope.length - 1; k >= 0; k -= 1) {
        digits[k] += 1;
        at += steps[k];
        if (digits[k] < net.cards[scope[k]]) break;
        at -= steps[k] * digits[k];
        digits[k] = 0;
      }
    }
    return { cells, size: step };
  };

  const cliques = net.cliques.map((scope, at) => {
    const size = scope.reduce((total, v) => total * net.cards[v], 1);
    const parent = net.parents[at];
    const shared = parent < 0 ? [] : scope.filter((v) => net.cliques[parent].includes(v));
    return {
      parent,
      potential: new Float64Array(size).fill(1),
      belief: new Float64Array(size),
      own: parent < 0 ? null : project(scope, shared),
      above: parent < 0 ? null : project(net.cliques[parent], shared),
    };
  });
  for (const factor of net.factors) {
    const { potential } = cliques[factor.clique];
    const { cells } = project(net.cliques[factor.clique], factor.scope);
    for (let cell = 0; cell < potential.length; cell += 1) potential[cell] *= factor.values[cells[cell]];
  }
  // The smallest clique of each variable answers for it.
  const homes = net.cards.map((_, v) => {
    let best = -1;
    net.cliques.forEach((scope, at) => {
      if (scope.includes(v) && (best < 0 || cliques[at].potential.length < cliques[best].potential.length)) best = at;
    });
    return best < 0 ? null : { clique: best, cells: project(net.cliques[best], [v]).cells };
  });

  const summed = (belief, map) => {
    const found = new Float64Array(map.size);
    for (let cell = 0; cell < belief.length; cell += 1) found[map.cells[cell]] += belief[cell];
    return found;
  };
  const times = (belief, map, message) => {
    for (let cell = 0; cell < belief.length; cell += 1) belief[cell] *= message[map.cells[cell]];
  };
  const scaled = (values) => {
    let top = 0;
    for (const value of values) if (value > top) top = value;
    if (top > 0) for (let cell = 0; cell < values.length; cell += 1) values[cell] /= top;
    return Math.log(top);
  };

  // One pass up and one pass down; returns log of the sum over all joint states, -Infinity if there is none left.
  const calibrate = (evidence) => {
    for (const clique of cliques) clique.belief.set(clique.potential);
    for (const [v, state] of evidence) {
      if (!homes[v]) continue;
      const { clique, cells } = homes[v];
      const { belief } = cliques[clique];
      for (let cell = 0; cell < belief.length; cell += 1) if (cells[cell] !== state) belief[cell] = 0;
    }
    let total = 0;
    for (const at of net.order) {
      const clique = cliques[at];
      total += scaled(clique.belief);
      if (clique.parent < 0) {
        total += Math.log(clique.belief.reduce((sum, value) => sum + value, 0));
      } else {
        clique.up = summed(clique.belief, clique.own);
        total += scaled(clique.up);
        times(cliques[clique.parent].belief, clique.above, clique.up);
      }
    }
    if (!(total > -Infinity)) return -Infinity;
    for (let k = net.order.length - 1; k >= 0; k -= 1) {
      const clique = cliques[net.order[k]];
      if (clique.parent < 0) continue;
      const message = summed(cliques[clique.parent].belief, clique.above);
      for (let cell = 0; cell < message.length; cell += 1) message[cell] = clique.up[cell] > 0 ? message[cell] / clique.up[cell] : 0;
      times(clique.belief, clique.own, message);
      scaled(clique.belief);
    }
    return total;
  };
  const posterior = (v) => {
    const found = new Float64Array(net.cards[v]);
    if (!homes[v]) return found.fill(1 / net.cards[v]);
    const { clique, cells } = homes[v];
    const { belief } = cliques[clique];
    let sum = 0;
    for (let cell = 0; cell < belief.length; cell += 1) {
      found[cells[cell]] += belief[cell];
      sum += belief[cell];
    }
    return found.map((value) => value / sum);
  };

  const evidence = new Map();
  const prior = calibrate(evidence);
  const rows = Array.from({ length: net.nodes }, (_, v) => [...document.querySelectorAll(`[data-variable="${v}"]`)]);
  const name = (v) => byId(`v${v}`).querySelector("h3").textContent;
  const label = (v, s) => rows[v][s].querySelector(".state").textContent;
  const percent = (p) => {
    if (p === 0 || p === 1 || (p >= 0.0005 && p < 0.9995)) return `${(100 * p).toFixed(1)} %`;
    return p < 0.5 ? "< 0.1 %" : "> 99.9 %";
  };
  const show = () => {
    const log = calibrate(evidence);
    const possible = log > -Infinity;
    for (let v = 0; v < net.nodes; v += 1) {
      const known = evidence.has(v);
      const distribution = possible ? posterior(v) : null;
      byId(`v${v}`).classList.toggle("known", known);
      document.querySelectorAll(`.node[data-node="${v}"]`).forEach((node) => node.classList.toggle("known", known));
      rows[v].forEach((row, s) => {
        row.setAttribute("aria-pressed", String(evidence.get(v) === s));
        row.dataset.probability = distribution ? String(distribution[s]) : "";
        row.querySelector(".fill").setAttribute("width", distribution ? `${100 * distribution[s]}%` : "0");
        const said = distribution ? percent(distribution[s]) : "–";
        row.querySelector(".share").textContent = said;
        row.setAttribute("aria-label", `${name(v)} = ${label(v, s)}: ${said}`);
      });
    }
    const chips = byId("chips");
    chips.replaceChildren(...[...evidence].map(([v, s]) => {
      const chip = document.createElement("button");
      chip.type = "button";
      chip.className = "chip";
      chip.textContent = `${name(v)} = ${label(v, s)} ×`;
      chip.setAttribute("aria-label", `Retract ${name(v)} = ${label(v, s)}`);
      chip.addEventListener("click", () => { toggle(v, s); rows[v][s].focus(); });
      return chip;
    }));
    byId("clear").hidden = evidence.size === 0;
    const chance = Math.exp(log - prior);
    const verdict = byId("verdict");
    verdict.dataset.probability = String(possible ? chance : 0);
    verdict.classList.toggle("impossible", !possible);
    if (!possible) verdict.textContent = "Impossible: the model gives this evidence the probability 0. Retract a state.";
    else if (evidence.size === 0) verdict.textContent = "Nothing is known yet. Choose a state to set it as evidence.";
    else verdict.textContent = `Probability of the evidence: ${chance >= 0.001 ? chance.toPrecision(4) : chance.toExponential(3)}`;
  };
  const toggle = (v, s) => {
    if (evidence.get(v) === s) evidence.delete(v);
    else evidence.set(v, s);
    const start = performance.now();
    show();
    byId("explorer").dataset.milliseconds = String(performance.now() - start);
  };
  rows.forEach((states, v) => states.forEach((row, s) => row.addEventListener("click", () => toggle(v, s))));
  byId("clear").addEventListener("click", () => {
    evidence.clear();
    show();
    rows[0][0].focus();
  });
  const filter = byId("filter");
  filter.addEventListener("input", () => {
    const wanted = filter.value.trim().toLowerCase();
    for (let v = 0; v < net.nodes; v += 1) byId(`v${v}`).hidden = !name(v).toLowerCase().includes(wanted);
  });
  byId("explorer").dataset.ready = "true";
  show();
})();
