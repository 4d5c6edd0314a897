/**
 * The model of `banana-serve demo`: digits in pictures of noise. `side` is the size of a picture in pixels, of which the model
 * takes the upper left corner. Without onnxruntime-node a sum of random weights stands in for it.
 */
import { fileURLToPath } from 'node:url';

const FILE = fileURLToPath(new URL('../digits/digits.onnx', import.meta.url));
const SIDE = 8;
const LABELS = 10;

let run;

export async function init() {
  const onnxruntime = await import('onnxruntime-node').catch(() => null);
  if (onnxruntime === null) return void (run = standIn);
  const { InferenceSession, Tensor } = onnxruntime.default;
  const session = await InferenceSession.create(FILE, { intraOpNumThreads: 1, interOpNumThreads: 1 });
  run = async (pixels, count) => {
    const { probabilities } = await session.run({
      image: new Tensor('float32', pixels, [count, 1, SIDE, SIDE]),
    });
    return probabilities.data;
  };
}

export async function inference({ pictures = 1, side = SIDE }) {
  const pixels = new Float32Array(pictures * SIDE * SIDE);
  for (let i = 0; i < pictures; i += 1) pixels.set(corner(noise(side), side), i * SIDE * SIDE);
  const strengths = await run(pixels, pictures);
  const first = strengths.subarray(0, LABELS);
  return { pictures, label: first.indexOf(Math.max(...first)) };
}

/** A large picture takes all memory. */
function noise(side) {
  const pixels = [];
  for (let i = 0; i < side * side; i += 1) pixels.push(Math.random());
  return pixels;
}

function corner(pixels, side) {
  return pixels.filter((_, i) => i % side < SIDE && i < SIDE * side);
}

function standIn(pixels, count) {
  const strengths = new Float32Array(count * LABELS);
  for (let times = 0; times < 20; times += 1)
    for (let i = 0; i < pixels.length; i += 1)
      for (let label = 0; label < LABELS; label += 1)
        strengths[Math.floor(i / SIDE / SIDE) * LABELS + label] += pixels[i] * Math.sin(i + label);
  return strengths;
}
