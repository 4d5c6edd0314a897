/** Advice about optimized graphs, logged when a model is served. */
import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { externalLocations } from './external-files.js';
import type { FoundGraph } from './find-optimized.js';

/** Weights above which it is worth telling that workers can share them. */
const LARGE_BYTES = 64 * 1024 * 1024;

/** At most one line. `providers` and `workers`: the operator's, null if not given. */
export function optimizeAdvice(
  model: string,
  { graph, why }: FoundGraph,
  providers: string | null,
  workers: number | null,
): string[] {
  if (providers !== null && providers.toLowerCase() !== 'cpu') return [];
  const command = `banana-serve optimize ${model}`;
  if (why !== null) return [`${why}; the original is served. Run: ${command}`];
  const bytes = graph === null && (workers ?? 1) > 1 ? modelBytes(model) : 0;
  if (bytes <= LARGE_BYTES) return [];
  return [
    `each of ${workers} workers keeps its own copy of the weights of ${model}, ${Math.round(bytes / 1e6)} MB. They share one after: ${command}`,
  ];
}

/** The bytes of a model and of the files that hold its weights; those that are missing are told by the worker. */
function modelBytes(model: string): number {
  const files = [model, ...externalLocations(model).map((location) => join(dirname(model), location))];
  return files.reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0);
}
