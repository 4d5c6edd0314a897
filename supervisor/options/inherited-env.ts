/** What a worker inherits of the environment of this process. */
import { OPTIONS, OPTION_NAMES, envName } from './table.js';

/** The front alone checks keys and signs; what an app does not have it cannot print. */
const SECRETS = OPTION_NAMES.filter((name) => 'secret' in OPTIONS[name]);
const NEVER_INHERITED: ReadonlySet<string> = new Set([...SECRETS.map(envName), 'MMS_KEYSTORE_PASS']);

/** `withheld`: the names that are withheld beside the server's own secrets. */
export function inheritedEnv(withheld: RegExp | null): NodeJS.ProcessEnv {
  const names = new Set(withheldNames(withheld));
  const kept = Object.entries(process.env).filter(([name]) => !NEVER_INHERITED.has(name) && !names.has(name));
  return Object.fromEntries(kept);
}

/** The variables that are there and no worker gets, in order, without the server's own secrets. */
export function withheldNames(withheld: RegExp | null): string[] {
  if (withheld === null) return [];
  const names = Object.keys(process.env).filter((name) => !NEVER_INHERITED.has(name) && withheld.test(name));
  return names.sort();
}
