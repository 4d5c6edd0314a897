/** What an address of the internet protocol is for, as far as a download has to know. Pure. */
import { BlockList, isIPv4, isIPv6 } from 'node:net';

/**
 * `public`: of the world. `private`: of this machine, or of the networks of its owner. `special`: of nobody who offers
 * models. Machines in a cloud are told their credentials on one of the latter (169.254.169.254).
 */
export type AddressKind = 'public' | 'private' | 'special';

/** Decides by an address in the form in which look-ups give it; one of version 4 inside version 6 is what that is. */
export function kindOfAddress(address: string): AddressKind {
  const inner = translatedAddress(address);
  if (inner !== null) return kindOfAddress(inner);
  const family = isIPv6(address) ? 'ipv6' : 'ipv4';
  if (SPECIAL.check(address, family)) return 'special';
  return PRIVATE.check(address, family) ? 'private' : 'public';
}

/** The address of version 4 that a network with version 6 alone reaches by this one (RFC 6052); null if it is no such one. */
function translatedAddress(address: string): string | null {
  const [, tail] = /^64:ff9b::([\da-f:.]*)$/i.exec(address) ?? [];
  if (tail === undefined || isIPv4(tail)) return tail ?? null;
  const [low = 0, high = 0] = tail
    .split(':')
    .map((group) => parseInt(group || '0', 16))
    .reverse();
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}

/** From the registries of special-purpose addresses (RFC 6890). */
const PRIVATE = blockList([
  ['10.0.0.0', 8],
  ['100.64.0.0', 10], // shared by the customers of a carrier; private networks of clouds use it too
  ['127.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15], // benchmarks of networks
  ['::1', 128],
  ['64:ff9b:1::', 48], // translated to version 4 by a network of one's own
  ['fc00::', 7],
  ['fec0::', 10], // what fc00::/7 was before
]);

const SPECIAL = blockList([
  ['0.0.0.0', 8],
  ['169.254.0.0', 16],
  ['192.0.0.0', 24],
  ['192.88.99.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
  ['::', 128],
  ['2001::', 32], // tunnels that nobody offers models through
  ['2002::', 16],
  ['fe80::', 10],
  ['fd00:ec2::', 32], // where Amazon's machines are told their credentials, in version 6
  ['ff00::', 8],
]);

function blockList(subnets: readonly (readonly [net: string, prefix: number])[]): BlockList {
  const list = new BlockList();
  for (const [net, prefix] of subnets) list.addSubnet(net, prefix, isIPv6(net) ? 'ipv6' : 'ipv4');
  return list;
}
