/** A model that does nothing, or ends its process if the input says so. */
export function inference({ kill }) {
  if (kill) process.exit(1);
  return null;
}
