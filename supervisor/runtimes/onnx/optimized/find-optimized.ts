/** Finds the optimized graph of a model that `banana-serve optimize` has written. The server itself never writes one. */
import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { externalLocations } from './external-files.js';
import {
  folderNameOf,
  GRAPH,
  graphsIn,
  keyOf,
  keyOfFolderName,
  placesOf,
  problemOfFiles,
  type OptimizedKey,
  modelFacts,
  type FileFacts,
} from './optimized-files.js';

export interface FoundGraph {
  /** Path of the graph; null if the original is to be served. */
  readonly graph: string | null;
  /** The files of which it was made, as they were when they were compared. */
  readonly madeOf: readonly FileFacts[];
  /** Why the original is served although there are optimized graphs; null if none is there, or one is used. */
  readonly why: string | null;
}

const NONE: FoundGraph = { graph: null, madeOf: [], why: null };

/** Reads model and graph whole, in another thread, but only where there are graphs. Never rejects. */
export async function findOptimized(
  model: string,
  onnxruntime: string,
  env: NodeJS.ProcessEnv,
  isUnpacked = false,
): Promise<FoundGraph> {
  const places = placesOf(model, env, isUnpacked).filter((place) => graphsIn(place).length > 0);
  const [beside] = places;
  if (beside === undefined) return NONE;
  try {
    const madeOf = await modelFacts(model);
    const key = keyOf(madeOf, onnxruntime);
    const name = folderNameOf(key);
    const place = places.find((one) => graphsIn(one).includes(name));
    // A cache has the graphs of other models, too.
    if (place === undefined)
      return beside === `${model}.optimized` ? { ...NONE, why: whyOther(beside, key) } : NONE;
    const folder = join(place, name);
    const problem = await problemOfFiles(folder);
    if (problem === null) return { graph: join(folder, GRAPH), madeOf, why: null };
    return { ...NONE, why: `${folder}: ${problem}. Remove it` };
  } catch (thrown) {
    return {
      ...NONE,
      why: `${beside} was not compared with the model: ${(thrown as Error).message}. Mend that`,
    };
  }
}

/** Names what the graphs in a place were made for, where it differs from what is here. */
function whyOther(place: string, key: OptimizedKey): string {
  const others = graphsIn(place).flatMap((name) => keyOfFolderName(name) ?? []);
  const same = others.filter(({ model }) => model === key.model);
  if (same.length === 0) return `${place} was made of another model than is there now`;
  const versions = same.filter(({ cpu }) => cpu === key.cpu).map(({ onnxruntime }) => onnxruntime);
  return versions.length === 0
    ? `${place} was made for another processor`
    : `${place} was made for onnxruntime-node ${versions.join(', ')}, and this is ${key.onnxruntime}`;
}

/** Weights above which it is worth telling that workers can share them. */
const LARGE_BYTES = 64 * 1024 * 1024;

/** Advice to log when the model is served: at most one line. `providers` and `workers`: the operator's, null if not given. */
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
