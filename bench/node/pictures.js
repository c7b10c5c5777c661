// Makes a proxy and a thumbnail of each of a list of pictures, from one decode each, by sharp.
// Every line on stdin asks for one round over the list; its seconds are printed.
"use strict";

const path = require("node:path");
const readline = require("node:readline");
const sharp = require("sharp");

const [lanes, folder, ...sources] = process.argv.slice(2);
// As many pictures at a time as there are lanes, each by one thread: the fastest it can be.
sharp.concurrency(1);
sharp.cache(false);

async function make(source, name) {
  const { data, info } = await sharp(source)
    .autoOrient()
    .resize(1024, 1024, { fit: "inside", withoutEnlargement: true })
    .raw()
    .toBuffer({ resolveWithObject: true });
  const raw = { width: info.width, height: info.height, channels: info.channels };
  await sharp(data, { raw }).jpeg({ quality: 80 }).toFile(path.join(folder, `${name}.jpg`));
  await sharp(data, { raw })
    .resize(320, 320, { fit: "inside", withoutEnlargement: true })
    .webp({ quality: 80, effort: 4 })
    .toFile(path.join(folder, `${name}.webp`));
}

async function round() {
  let next = 0;
  const lane = async () => {
    while (next < sources.length) {
      const index = next++;
      await make(sources[index], String(index));
    }
  };
  const began = process.hrtime.bigint();
  await Promise.all(Array.from({ length: Number(lanes) }, lane));
  return Number(process.hrtime.bigint() - began) / 1e9;
}

async function main() {
  for await (const _ of readline.createInterface({ input: process.stdin })) {
    console.log(await round());
  }
}

main();
