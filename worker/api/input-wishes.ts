/** Kinds of body that an app gets only if it asks for them; otherwise they are read as JSON, or refused. */

/** Kinds of body that an app or a route has asked for. */
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
  for (const [name, value] of Object.entries({ forms, text })) {
    if (value !== undefined && typeof value !== 'boolean')
      throw new TypeError(`${where}: ${name} must be true or false`);
  }
  return { forms: forms === true, text: text === true };
}
