/** How the flags are named that lead to other addresses, for those who cannot have one. */

export interface ListenFlags {
  readonly host: string;
  readonly port: string;
}

export const MAIN_FLAGS: ListenFlags = { host: '--host', port: '--port' };
