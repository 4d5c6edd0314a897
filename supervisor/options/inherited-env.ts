/** The environment variables that workers inherit from this process. */
import { OPTIONS, OPTION_NAMES, envName } from './table.js';

/** Only the front checks keys and signs webhooks; an app cannot print a secret that it does not have. */
const SECRETS = OPTION_NAMES.filter((name) => 'secret' in OPTIONS[name]);
const NEVER_INHERITED: ReadonlySet<string> = new Set([...SECRETS.map(envName), 'MMS_KEYSTORE_PASS']);

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
