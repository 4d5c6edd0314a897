/** The page's own address names its view, and what is asked of it. */

export type View = 'try' | 'watch' | 'logs';

export interface Address {
  readonly view: View;
  /** The parameters for the view, such as `request` for the logs. */
  readonly wishes: URLSearchParams;
}

export function addressOf(hash: string): Address {
  const [name, query = ''] = hash.slice(1).split('?');
  return { view: name === 'watch' || name === 'logs' ? name : 'try', wishes: new URLSearchParams(query) };
}

/** The address of the logs, of one call or one worker. */
export function logsAddress(wishes: Readonly<Record<string, string>>): string {
  return `#logs?${new URLSearchParams(wishes).toString()}`;
}
