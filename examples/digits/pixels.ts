/** Converts the caller's input to the model's: 8 x 8 amounts of ink from 0 to 1, row by row. */
import { PNG } from 'pngjs';

export const SIDE = 8;
const MAX_INK = 16; // the unit of the data set the model was trained on
const MAX_PNG_SIDE = 1024; // a few hundred bytes of PNG may claim gigabytes of pixels
const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
const HEADER_BYTES = 24; // signature, then a chunk that starts with width and height

/** An invalid input; its message is for the caller. */
export class BadInput extends Error {}

/** @param pixels 64 numbers from 0 to 16, flat or as 8 rows of 8. @throws BadInput */
export function readPixels(pixels: unknown): Float32Array {
  const rows: unknown[] = Array.isArray(pixels) ? pixels : [];
  const nested = rows.length === SIDE && rows.every((row) => Array.isArray(row) && row.length === SIDE);
  const flat = nested ? rows.flat() : rows;
  if (flat.length !== SIDE * SIDE || !flat.every(isInk)) {
    throw new BadInput('`pixels` must be 64 numbers from 0 to 16, or 8 rows of 8 of them');
  }
  return Float32Array.from(flat, (ink) => ink / MAX_INK);
}

function isInk(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= MAX_INK;
}

/** Light strokes on black, about square, of any size: shrunk to the mean brightness of 8 x 8 cells. @throws BadInput */
export function readPng(bytes: Uint8Array): Float32Array {
  const { width, height, data } = decode(bytes);
  const columns = cellWeights(width);
  const rows = cellWeights(height);
  const pixels = new Float32Array(SIDE * SIDE);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const ink = brightness(data, (y * width + x) * 4);
      for (const row of rows[y]!) {
        for (const column of columns[x]!) {
          pixels[row.cell * SIDE + column.cell]! += ink * row.share * column.share;
        }
      }
    }
  }
  return pixels;
}

function decode(bytes: Uint8Array): PNG {
  const png = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (png.length < HEADER_BYTES || !png.subarray(0, 8).equals(SIGNATURE))
    throw new BadInput('This is not a PNG');
  // Check the claimed size first, because decoding allocates that much.
  if (Math.max(png.readUInt32BE(16), png.readUInt32BE(20)) > MAX_PNG_SIDE) {
    throw new BadInput(`The PNG is larger than ${MAX_PNG_SIDE} x ${MAX_PNG_SIDE}`);
  }
  try {
    return PNG.sync.read(png);
  } catch (cause) {
    throw new BadInput('The PNG is damaged', { cause });
  }
}

/** From 0 (black, or transparent) to 1 (white). */
function brightness(rgba: Uint8Array, at: number): number {
  const gray = 0.299 * rgba[at]! + 0.587 * rgba[at + 1]! + 0.114 * rgba[at + 2]!;
  return (gray / 255) * (rgba[at + 3]! / 255);
}

interface Weight {
  readonly cell: number;
  readonly share: number;
}

/** Returns, for each pixel of a line of `length`, the cells it overlaps and its share of each cell. */
function cellWeights(length: number): Weight[][] {
  const cellSize = length / SIDE;
  return Array.from({ length }, (_, pixel) => {
    const weights: Weight[] = [];
    for (let cell = Math.floor(pixel / cellSize); cell < SIDE && cell * cellSize < pixel + 1; cell += 1) {
      const overlap = Math.min(pixel + 1, (cell + 1) * cellSize) - Math.max(pixel, cell * cellSize);
      weights.push({ cell, share: overlap / cellSize });
    }
    return weights;
  });
}
