/** A model that does nothing, or ends its process if the input asks for it. */
export function inference({ kill }) {
  if (kill) process.exit(1);
  return null;
}
