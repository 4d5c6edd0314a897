/** Searches a few sentences by meaning: `npx tsx examples/embed/search.ts "a big animal"`. The model is a function, in a process of its own. */
import { supervise } from 'banana-serve';

const SENTENCES = [
  'a small dog ran after the cat',
  'the bird built its nest in a tree',
  'he plays the piano and the violin',
  'the orchestra gave a concert',
  'she paid the money back to the bank',
  'the company sold its shares',
];

const app = new URL('embed.ts', import.meta.url);
await using embed = await supervise<typeof import('./embed.js')>(app, { maxWorkers: 2 });

const question = process.argv[2] ?? 'an animal';
const [asked, ...vectors] = await Promise.all(
  [question, ...SENTENCES].map((text) => embed({ text }, { timeoutMs: 30_000 })),
);
const ranked = vectors
  .map((vector, i) => ({ sentence: SENTENCES[i], likeness: product(asked as Float32Array, vector) }))
  .sort((a, b) => b.likeness - a.likeness);
for (const { sentence, likeness } of ranked.slice(0, 3)) console.log(likeness.toFixed(2), sentence);

function product(a: Float32Array, b: Float32Array): number {
  return a.reduce((sum, strength, i) => sum + strength * (b[i] ?? 0), 0);
}
