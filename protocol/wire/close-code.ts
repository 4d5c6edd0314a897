/** Whether a program may close a WebSocket with this code (RFC 6455 section 7.4): 1000, or 3000 to 4999. */
export function isCloseCode(code: number): boolean {
  return code === 1000 || (Number.isInteger(code) && code >= 3000 && code <= 4999);
}
