/** Everything that can be called: the routes of all models, as the apps describe them, and their first inputs. */
import type {
  DialectPath,
  LiveDescription,
  LiveModel,
  LiveRoute,
  TensorSpec,
} from '../../status/live-types.js';
import type { History } from '../live/history.js';
import { formatJson, readJson } from '../parts/json-text.js';

export interface Target {
  /** Names it while the server runs. */
  readonly id: string;
  readonly model: LiveModel;
  readonly description: LiveDescription;
  readonly route: LiveRoute;
}

/** Without the models that are being taken away. */
export function targetsOf({ models, descriptions }: History): Target[] {
  return models.flatMap((model) => {
    const description = descriptions.get(model.key);
    if (description === undefined || model.state === 'unloading') return [];
    return description.routes
      .filter(({ paths }) => paths.length > 0)
      .map((route) => ({ id: `${model.key} ${route.path}`, model, description, route }));
  });
}

/** The one that was chosen, if it is still there; else the best of the same model, else of the default one. */
export function chosenTarget(targets: readonly Target[], id: string): Target | null {
  const exact = targets.find((target) => target.id === id);
  if (exact !== undefined) return exact;
  const ofModel = targets.filter(({ model }) => id.startsWith(`${model.key} `));
  const ofDefault = targets.filter(({ model }) => model.isDefault && model.isDefaultVersion);
  const candidates = [ofModel, ofDefault, targets].find((list) => list.length > 0) ?? [];
  return candidates.find(({ route }) => route.path === '/') ?? candidates[0] ?? null;
}

/** Absolute, below the folder in which the page lies: a proxy may have put a prefix before all paths. */
export function urlOf({ path }: DialectPath, base: string): string {
  return new URL(`.${path}`, base).href;
}

/** The fields in which dialects wrap the input. */
const WRAPPED: Readonly<Record<string, string>> = { gateway: 'modelInputs', cog: 'input' };
/** The Open Inference Protocol wants a list of tensors. */
const TENSORS = 'open-inference';
/** KServe's first protocol wants a list of inputs. */
const INSTANCES = 'kserve-v1';
/** Their paths take JSON alone. */
const NOT_OWN: ReadonlySet<string> = new Set([
  ...Object.keys(WRAPPED),
  TENSORS,
  INSTANCES,
  'openai',
  'rerank',
]);

/** The app's example, as JSON text in the shape that the path's dialect wants. `{}` if nothing is known of the route's input. */
export function firstInput(description: LiveDescription, route: LiveRoute, path: DialectPath): string {
  if (path.dialect === TENSORS) return formatted(JSON.stringify(tensorRequest(description)));
  const example = exampleOf(description, route);
  const input = example === '' ? signatureInput(description) : example;
  if (path.dialect === INSTANCES) return formatted(`{"instances":[${input}]}`);
  const field = WRAPPED[path.dialect];
  return formatted(field === undefined ? input : `{"${field}":${input}}`);
}

/** Whether the path takes the app's own input, as a form or a file shows it. */
export function takesOwnInput({ dialect }: DialectPath): boolean {
  return !NOT_OWN.has(dialect);
}

/** Paths that take nothing but JSON, besides what the route says. */
export function isJsonOnly(route: LiveRoute, path: DialectPath): boolean {
  return route.input === 'json' || !takesOwnInput(path);
}

/** An app has one example, for its route `/`, or for its first if it has none; empty for other routes. */
export function exampleOf({ routes, example }: LiveDescription, { path }: LiveRoute): string {
  const own = routes.find((route) => route.path === '/') ?? routes[0];
  return own?.path === path ? example : '';
}

function formatted(text: string): string {
  const { node } = readJson(text);
  return node === null ? text : formatJson(node);
}

function signatureInput({ signature }: LiveDescription): string {
  if (signature === null) return '{}';
  return JSON.stringify(Object.fromEntries(signature.inputs.map((tensor) => [tensor.name, zeros(tensor)])));
}

function tensorRequest({ signature, example }: LiveDescription): object {
  const given = readObject(example);
  const inputs = (signature?.inputs ?? []).map((tensor) => {
    const { name, datatype } = tensor;
    const data = given[name] ?? zeros(tensor);
    return { name, datatype, shape: shapeOf(data, tensor.shape?.length ?? Infinity), data };
  });
  return { inputs };
}

function readObject(text: string): Readonly<Record<string, unknown>> {
  if (readJson(text).node?.kind !== 'object') return {};
  return JSON.parse(text) as Record<string, unknown>;
}

/** A larger tensor would fill the page. */
const MAX_ZEROS = 1_000;

/** A tensor of nothing, with one of each size that is free. */
function zeros({ datatype, shape = [] }: TensorSpec): unknown {
  const sizes = shape.map((size) => (size < 0 ? 1 : size));
  if (sizes.reduce((product, size) => product * size, 1) > MAX_ZEROS) return [];
  const zero = datatype === 'BYTES' ? '' : datatype === 'BOOL' ? false : 0;
  return sizes.reduceRight<unknown>((inner, size) => Array<unknown>(size).fill(inner), zero);
}

/** Sizes of nested lists. */
function shapeOf(data: unknown, dimensions: number): number[] {
  if (dimensions === 0 || !Array.isArray(data)) return [];
  return [data.length, ...shapeOf(data[0], dimensions - 1)];
}
