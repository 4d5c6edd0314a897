/** Kinds of body that an app gets only if it asks for them; otherwise they are read as JSON, or refused. */

/** Kinds of body that an app or a route has asked for. */
export interface InputWishes {
  /** `application/x-www-form-urlencoded` becomes an object of fields. */
  readonly forms: boolean;
  /** `text/plain` and other text becomes a string. */
  readonly text: boolean;
  /** Every body becomes an item of a custom service, and so does the request's query (`formats/mms.ts`). */
  readonly items?: boolean;
  /** The values of such items are bytes, whatever their content type. */
  readonly rawItems?: boolean;
}

export const NO_WISHES: InputWishes = { forms: false, text: false };

/** The wishes of a custom service. */
export const ITEMS: InputWishes = { forms: true, text: true, items: true };

/** Those of one that decodes its bodies itself. */
export const RAW_ITEMS: InputWishes = { ...ITEMS, rawItems: true };

/** @throws TypeError if one is neither true, false nor left out; `where` says whose wish it is */
export function inputWishes({ forms, text }: Readonly<Record<string, unknown>>, where: string): InputWishes {
  for (const [name, value] of Object.entries({ forms, text })) {
    if (value !== undefined && typeof value !== 'boolean')
      throw new TypeError(`${where}: ${name} must be true or false`);
  }
  return { forms: forms === true, text: text === true };
}
