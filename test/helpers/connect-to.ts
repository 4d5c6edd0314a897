/** Connections to a server by its address, for clients that write HTTP by hand. */
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** Opens a connection, over TLS if the address begins with https; any certificate is accepted. `paused`: nothing of it is read yet. */
export async function connectTo(
  url: string,
  options: { readonly allowHalfOpen?: boolean; readonly paused?: boolean } = {},
): Promise<Socket> {
  const { protocol, hostname, port } = new URL(url);
  const { allowHalfOpen = false, paused = false } = options;
  const place = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port), allowHalfOpen };
  const isTls = protocol === 'https:';
  const socket = isTls ? connectTls({ ...place, rejectUnauthorized: false }) : connect(place);
  if (paused) socket.pause();
  await new Promise<void>((resolve, reject) => {
    socket.once(isTls ? 'secureConnect' : 'connect', resolve);
    socket.once('error', reject);
  });
  socket.removeAllListeners('error');
  return socket;
}
