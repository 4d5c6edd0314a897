/** Options by which an app says that its inputs may safely run more than once. */

export interface RepeatOptions {
  /**
   * Inputs may safely run again: a job that was lost, threw or passed its run limit is tried again. If left out, the app's
   * `config` decides.
   */
  readonly repeatable?: boolean;
  /** Most times that such a job begins, 3 by default. */
  readonly attempts?: number;
}

const USUAL_ATTEMPTS = 3;
const MOST_ATTEMPTS = 100;

/** @throws TypeError if one of them has a wrong value; `where` names the place of the option */
export function repeatOptions(
  { repeatable, attempts }: Readonly<Record<string, unknown>>,
  where: string,
): RepeatOptions {
  if (repeatable !== undefined && typeof repeatable !== 'boolean')
    throw new TypeError(`${where}: repeatable must be true or false`);
  if (attempts !== undefined && !isCount(attempts))
    throw new TypeError(`${where}: attempts must be a whole number from 1 to ${MOST_ATTEMPTS}`);
  return {
    ...(repeatable === undefined ? {} : { repeatable }),
    ...(attempts === undefined ? {} : { attempts }),
  };
}

function isCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MOST_ATTEMPTS;
}

/** Most times that a job of a route with these options begins. `config`: those of the whole app. */
export function attemptsOf(route: RepeatOptions, config: RepeatOptions = {}): number {
  const isRepeatable = route.repeatable ?? config.repeatable ?? false;
  return isRepeatable ? (route.attempts ?? config.attempts ?? USUAL_ATTEMPTS) : 1;
}
