/** The environment of this process: the options that it sets, and the variables that workers inherit. */
import { didYouMean } from '../../protocol/text/sentences.js';
import { isSecret, notAllowed, type OptionSource } from './resolve.js';
import { OPTION_NAMES, envName, type OptionName } from './table.js';

/** Reads the BANANA_* variables (and those of platforms, such as PORT) as a source, with warnings for ignored ones. */
export function readEnvironment(env: NodeJS.ProcessEnv): { source: OptionSource; warnings: string[] } {
  const values: Record<string, unknown> = {};
  const from: Record<string, string> = {};
  const warnings: string[] = [];
  const take = (name: OptionName, variable: string): void => {
    const raw = env[variable];
    if (raw === '' && isSecret(name)) warnings.push(`${variable} is empty, which counts as not set`);
    if (raw === undefined || raw === '' || values[name] !== undefined) return;
    // Kubernetes sets NAME_PORT=tcp://… for every service in a namespace; one called "banana" would collide.
    if (/^(tcp|udp):\/\//.test(raw) && !isSecret(name))
      warnings.push(`${variable}=${raw} looks like a variable that Kubernetes sets, and is ignored`);
    else [values[name], from[name]] = [raw, variable];
  };
  // These platforms call this port only, whatever the image says.
  for (const variable of ['SAGEMAKER_BIND_TO_PORT', 'AIP_HTTP_PORT']) take('port', variable);
  for (const name of OPTION_NAMES) take(name, envName(name));
  take('port', 'PORT');
  warnings.push(...misspelledVariables(env));
  return { source: { values, where: (name) => from[name] ?? name }, warnings };
}

/** Paths at which a platform asks a container; null where it names none. */
export interface PlatformPaths {
  readonly health: string | null;
  readonly predict: string | null;
}

/** Reads the paths that Vertex AI names. @throws SERVE_CONFIG */
export function platformPaths(env: NodeJS.ProcessEnv): PlatformPaths {
  const pathIn = (variable: string): string | null => {
    const path = env[variable] ?? '';
    if (path === '' || /^\/[^?#\s]*$/.test(path)) return path || null;
    throw notAllowed(variable, path, 'a path that begins with a slash');
  };
  return { health: pathIn('AIP_HEALTH_ROUTE'), predict: pathIn('AIP_PREDICT_ROUTE') };
}

/** Variables that Kubernetes sets for a service called "banana", besides BANANA_PORT. */
const OF_KUBERNETES = /^BANANA_(?:SERVICE_(?:HOST|PORT)|PORT_\d+_)/;

function misspelledVariables(env: NodeJS.ProcessEnv): string[] {
  // Compared without the prefix, which would make any two names look alike.
  const prefix = 'BANANA_';
  const known = OPTION_NAMES.map((name) => envName(name).slice(prefix.length));
  return Object.keys(env)
    .filter((variable) => variable.startsWith(prefix) && !known.includes(variable.slice(prefix.length)))
    .filter((variable) => !OF_KUBERNETES.test(variable))
    .flatMap((variable) => {
      const question = didYouMean(variable.slice(prefix.length), known, '; did', (close) => prefix + close);
      return question === '' ? [] : [`${variable} is not an option of banana-serve${question}`];
    });
}

/** Only the front checks keys and signs webhooks; an app cannot print a secret that it does not have. */
const NEVER_INHERITED: ReadonlySet<string> = new Set([
  ...OPTION_NAMES.filter(isSecret).map(envName),
  'MMS_KEYSTORE_PASS',
]);

/** The environment of a worker: without the server's own secrets and without names that match `withheld`. */
export function inheritedEnv(withheld: RegExp | null): NodeJS.ProcessEnv {
  const names = new Set(withheldNames(withheld));
  const kept = Object.entries(process.env).filter(([name]) => !NEVER_INHERITED.has(name) && !names.has(name));
  return Object.fromEntries(kept);
}

/** Sorted names of the variables that are set and match `withheld`, without the server's own secrets. */
export function withheldNames(withheld: RegExp | null): string[] {
  if (withheld === null) return [];
  const names = Object.keys(process.env).filter((name) => !NEVER_INHERITED.has(name) && withheld.test(name));
  return names.sort();
}
