/** Parses a client's Accept header, as far as the server offers a choice. */

/** Whether `type` is explicitly listed, with a quality above 0 and not below that of `application/json`. */
export function asksFor(accept: string, type: string): boolean {
  if (!accept.toLowerCase().includes(type)) return false;
  const wanted = qualityOf(accept, type);
  return wanted > 0 && wanted >= qualityOf(accept, 'application/json');
}

function qualityOf(accept: string, type: string): number {
  for (const range of accept.split(',')) {
    const [name, ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    if (name !== type) continue;
    const q = parameters.find((parameter) => parameter.startsWith('q='));
    const quality = q === undefined ? 1 : Number(q.slice(2));
    return Number.isFinite(quality) ? quality : 0;
  }
  return 0;
}
