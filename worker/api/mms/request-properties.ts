/** Headers and fields of a request, as one object that is read by names in any case. */

/** A text for each header, and `{ 'content-type': … }` for each field of the item. */
export type RequestProperties = Readonly<Record<string, string | { readonly 'content-type': string }>>;

/** Looks a name up as it was asked for, then in lower case, in which headers stand. */
const ANY_CASE: ProxyHandler<Record<string, unknown>> = {
  get: (target, key): unknown =>
    typeof key === 'string' ? target[nameIn(target, key)] : Reflect.get(target, key),
  has: (target, key) => (typeof key === 'string' ? nameIn(target, key) in target : Reflect.has(target, key)),
};

function nameIn(target: object, key: string): string {
  return key in target ? key : key.toLowerCase();
}

/** `headers`: names in lower case. `fieldTypes`: content types by the name of the field. */
export function requestProperties(
  headers: Readonly<Record<string, string>>,
  fieldTypes: Readonly<Record<string, string>>,
): RequestProperties {
  const map = Object.create(null) as Record<string, string | { 'content-type': string }>;
  for (const [name, type] of Object.entries(fieldTypes)) {
    if (!Object.hasOwn(headers, name.toLowerCase())) map[name] = { 'content-type': type };
  }
  Object.assign(map, headers);
  return new Proxy(map, ANY_CASE) as RequestProperties;
}
