import { useEffect, useRef, useState } from 'preact/hooks';
import { keepConnected, type Connection } from '../live/connection.js';
import { keyHeaders } from '../live/key.js';
import { withLines, type NumberedLine } from '../live/log-lines.js';
import type { AnyLiveEvent } from '../live/read-live.js';

export interface FollowedLines {
  readonly lines: readonly NumberedLine[];
  readonly connection: Connection;
}

/** Reads the log while the component is shown. `key`: it is read anew with another key. */
export function useLines(key: string): FollowedLines {
  const [followed, setFollowed] = useState<FollowedLines>({ lines: [], connection: { state: 'connecting' } });
  const lines = useRef<readonly NumberedLine[]>([]);
  useEffect(() => {
    let isNew = true;
    const changed = (connection: Connection): void => {
      if (connection.state === 'live') isNew = true; // it sends the last lines again
      setFollowed({ lines: lines.current, connection });
    };
    const received = (event: AnyLiveEvent): boolean => {
      if (event.name !== 'lines' || (event.data.lines.length === 0 && !isNew)) return true;
      lines.current = withLines(isNew ? [] : lines.current, event.data);
      isNew = false;
      setFollowed((before) => ({ ...before, lines: lines.current }));
      return true;
    };
    return keepConnected('_k/live?log', { changed, received }, keyHeaders).stop;
  }, [key]);
  return followed;
}
