// SPDX-License-Identifier: MIT OR Apache-2.0
// The drawing of a page's pictures: node layout.mjs LAYOUT.JS PAGE.HTML prints, as JSON, for each picture its stage,
// its number of boxes, how many overlap, how many arrows do not lead down, and the milliseconds that it took.
import { readFileSync } from "node:fs";

const [script, page] = process.argv.slice(2).map(path => readFileSync(path, "utf8"));
const layOut = new Function(`${script}\nreturn layOut;`)();
const data = JSON.parse(page.match(/id="data">\n([^]*?)<\/script>/)[1]);
const WIDTH = 150;

function overlaps(places) {
  const layers = new Map();
  for (const place of places) layers.set(place.y, [...layers.get(place.y) || [], place.x]);
  let n = 0;
  for (const row of layers.values()) {
    row.sort((a, b) => a - b);
    for (let i = 1; i < row.length; i++) n += row[i] - row[i - 1] < WIDTH;
  }
  return n;
}

console.log(JSON.stringify(data.pictures.map(({ stage, boxes, arrows }) => {
  const start = performance.now(), { places } = layOut(boxes.map(box => ({ ...box, width: WIDTH })), arrows);
  const ms = performance.now() - start, up = arrows.filter(a => places[a.from].y >= places[a.to].y).length;
  return { stage, boxes: boxes.length, overlaps: overlaps(places), up, ms };
})));
