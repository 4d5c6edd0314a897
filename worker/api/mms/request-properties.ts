/** Headers and fields of a request as one object, with lookups in any case. */

/** A string for each header, and `{ 'content-type': … }` for each field of the item. */
export type RequestProperties = Readonly<Record<string, string | { readonly 'content-type': string }>>;

/** Looks a name up unchanged, then in lower case, which is the case of headers. */
const ANY_CASE: ProxyHandler<Record<string, unknown>> = {
  get: (target, key): unknown =>
    typeof key === 'string' ? target[nameIn(target, key)] : Reflect.get(target, key),
  has: (target, key) => (typeof key === 'string' ? nameIn(target, key) in target : Reflect.has(target, key)),
};

function nameIn(target: object, key: string): string {
  return key in target ? key : key.toLowerCase();
}

/** `headers` have names in lower case; `fieldTypes` are content types by the name of the field. */
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
