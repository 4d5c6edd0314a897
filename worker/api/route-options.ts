/** Options of an app or of a route: the kinds of body that it takes, and whether its inputs may safely run more than once. */

/** Kinds of body that an app gets only if it asks for them; otherwise they are read as JSON, or refused. */
export interface InputWishes {
  /** `application/x-www-form-urlencoded` becomes an object of fields. */
  readonly forms: boolean;
  /** `text/plain` and other text becomes a string. */
  readonly text: boolean;
  /** Every body, together with the request's query, becomes an item of a custom service (`formats/mms.ts`). */
  readonly items?: boolean;
  /** The values of such items are bytes for every content type. */
  readonly rawItems?: boolean;
}

export const NO_WISHES: InputWishes = { forms: false, text: false };

/** For a custom service. */
export const ITEMS: InputWishes = { forms: true, text: true, items: true };

/** For a custom service that decodes its bodies itself. */
export const RAW_ITEMS: InputWishes = { ...ITEMS, rawItems: true };

/** @throws TypeError if one is given and not a boolean; `where` names the place of the option */
export function inputWishes({ forms, text }: Readonly<Record<string, unknown>>, where: string): InputWishes {
  assertSwitches({ forms, text }, where);
  return { forms: forms === true, text: text === true };
}

function assertSwitches(switches: Readonly<Record<string, unknown>>, where: string): void {
  for (const [name, value] of Object.entries(switches))
    if (value !== undefined && typeof value !== 'boolean')
      throw new TypeError(`${where}: ${name} must be true or false`);
}

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
  assertSwitches({ repeatable }, where);
  if (attempts !== undefined && !isCount(attempts))
    throw new TypeError(`${where}: attempts must be a whole number from 1 to ${MOST_ATTEMPTS}`);
  return {
    ...(repeatable === undefined ? {} : { repeatable: repeatable as boolean }),
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
