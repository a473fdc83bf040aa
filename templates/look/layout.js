// SPDX-License-Identifier: MIT OR Apache-2.0
// A layered drawing of a picture (Sugiyama, Tagawa, Toda: Methods for visual understanding of hierarchical system
// structures, 1981). In: boxes with sizes, in the order in which they are computed, and arrows. Out: their centres, and
// for each arrow the points that it passes. A layer is a rank, the longest way from the inputs; an arrow over several
// ranks passes a point in each; the order within a layer is by the mean of neighbours, sweep after sweep.
"use strict";

const LAYER = 84, GAP = 26, LONGEST = 40, SWEEPS = 8;

function ranksOf(boxes, arrows) {
  const ranks = boxes.map(() => 0), entered = boxes.map(() => false), next = boxes.map(() => Infinity);
  const raise = (from, to) => { ranks[to] = Math.max(ranks[to], ranks[from] + 1); };
  const into = boxes.map(() => []), lastOf = new Map();
  for (const a of arrows) { into[a.to].push(a.from); entered[a.to] = true; }
  boxes.forEach((box, i) => {                           // arrows lead from earlier boxes to later ones
    for (const from of into[i]) {
      raise(from, i);
      if (lastOf.has(from)) raise(lastOf.get(from), i); // behind the bodies of what it reads
    }
    if (box.inside >= 0 && !entered[i]) raise(box.inside, i);
    for (let at = box.inside; at >= 0; at = boxes[at].inside)
      if (!lastOf.has(at) || ranks[lastOf.get(at)] < ranks[i]) lastOf.set(at, i);
  });
  for (const a of arrows) next[a.from] = Math.min(next[a.from], ranks[a.to]);
  boxes.forEach((box, i) => {                           // inputs stand over what reads them
    if (!entered[i] && box.inside < 0 && next[i] < Infinity) ranks[i] = next[i] - 1;
  });
  return ranks;
}

// Points in layers: one for each box, and those that long arrows pass.
function pointsOf(boxes, arrows, ranks) {
  const points = boxes.map((box, i) => ({ width: box.width, rank: ranks[i], up: [], down: [], x: 0, order: 0 }));
  const ways = arrows.map(a => {
    const way = [points[a.from]], span = ranks[a.to] - ranks[a.from];
    for (let r = 1; r < span && span <= LONGEST; r++) {
      const point = { width: 4, rank: ranks[a.from] + r, up: [], down: [], x: 0, order: 0 };
      points.push(point);
      way.push(point);
    }
    way.push(points[a.to]);
    if (span <= LONGEST)
      for (let i = 1; i < way.length; i++) { way[i - 1].down.push(way[i]); way[i].up.push(way[i - 1]); }
    return way;
  });
  return { points, ways };
}

function mean(points, key, otherwise) {
  return points.length ? points.reduce((sum, p) => sum + p[key], 0) / points.length : otherwise;
}

function order(layers) {
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      for (const p of layer) p.want = mean(down ? p.up : p.down, "order", p.order);
      layer.sort((p, q) => p.want - q.want || p.order - q.order);
      layer.forEach((p, i) => { p.order = i; });
    }
  }
}

// Each point goes where its neighbours are, as far as those beside it leave room: halfway between the leftmost places
// and the rightmost, which keep their distances both.
function place(layers) {
  const apart = (p, q) => (p.width + q.width) / 2 + GAP;
  for (const layer of layers)
    layer.forEach((p, i) => { p.x = i ? layer[i - 1].x + apart(layer[i - 1], p) : 0; });
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      const want = layer.map(p => mean(down ? p.up : p.down, "x", p.x)), left = [], right = [];
      for (let i = 0; i < layer.length; i++)
        left[i] = i ? Math.max(want[i], left[i - 1] + apart(layer[i - 1], layer[i])) : want[i];
      for (let i = layer.length - 1; i >= 0; i--)
        right[i] = i + 1 < layer.length ? Math.min(want[i], right[i + 1] - apart(layer[i], layer[i + 1])) : want[i];
      layer.forEach((p, i) => { p.x = (left[i] + right[i]) / 2; });
    }
  }
}

function layOut(boxes, arrows) {
  const ranks = ranksOf(boxes, arrows), { points, ways } = pointsOf(boxes, arrows, ranks), layers = [];
  for (const p of points) (layers[p.rank] = layers[p.rank] || []).push(p);
  const all = Array.from(layers, layer => layer || []);
  for (const layer of all) layer.forEach((p, i) => { p.order = i; });
  order(all);
  place(all);
  for (const p of points) p.y = p.rank * LAYER;
  return { places: points.slice(0, boxes.length), ways };
}
