/** The places that a front knows: answers, news and looks come by two connections, in any order between them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { KnownPlaces } from '../../../../supervisor/jobs/redis/known-places.js';
import { placeText } from '../../../../supervisor/jobs/redis/line.js';

const TARGET = { model: 'm', version: '1', isDefault: true, routes: new Map([['/', 1]]) };
const PLACES = [0, 1, 2].map((priority) =>
  placeText({ model: 'm', version: null, route: '/', priority }),
) as [string, string, string];

test('news that come late change nothing', () => {
  const known = new KnownPlaces();
  known.replace(new Map([[PLACES[0], 1]]), 10, known.moment());
  known.set(PLACES[1], 3, 8); // sent before that look
  assert.equal(known.waiting(TARGET), 1);
});

test('a look forgets nothing that came after it', () => {
  const known = new KnownPlaces();
  const sentAt = known.moment();
  known.set(PLACES[1], 2, 12);
  known.replace(new Map([[PLACES[0], 1]]), 11, sentAt);
  assert.equal(known.waiting(TARGET), 3);
});

test('a Redis that has lost all counts anew', () => {
  const known = new KnownPlaces();
  known.set(PLACES[1], 2, 12);
  known.replace(new Map([[PLACES[0], 1]]), 1, known.moment());
  assert.equal(known.waiting(TARGET), 1);
  known.set(PLACES[1], 5, 2);
  assert.equal(known.waiting(TARGET), 6);
});

test('whatever is lost and however late it comes, the look after the last change finds all', () => {
  const change = fc.record({ place: fc.nat(2), count: fc.nat(3), isLost: fc.boolean(), delay: fc.nat(3) });
  const step = fc.oneof(change, fc.record({ lookDelay: fc.nat(2) }));
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const known = new KnownPlaces();
      const truth = new Map<string, number>();
      let version = 0;
      const late: { at: number; come: () => void }[] = [];
      const look = (at: number): void => {
        const [sentAt, seen] = [known.moment(), known.lookedAt];
        const [counts, then] = [new Map(truth), version];
        late.push({ at, come: () => seen !== then && known.replace(counts, then, sentAt) });
      };
      const arrive = (now: number): void => {
        for (const one of late.filter(({ at }) => at <= now)) {
          late.splice(late.indexOf(one), 1);
          one.come();
        }
      };
      for (const [now, one] of steps.entries()) {
        arrive(now);
        if ('lookDelay' in one) {
          if (late.length === 0) look(now + one.lookDelay); // one look at a time
          continue;
        }
        const place = PLACES[one.place] as string;
        if (one.count === 0) truth.delete(place);
        else truth.set(place, one.count);
        const [changed, count] = [(version += 1), one.count];
        if (!one.isLost) late.push({ at: now + one.delay, come: () => known.set(place, count, changed) });
      }
      arrive(Infinity);
      look(0);
      arrive(Infinity);
      assert.equal(
        known.waiting(TARGET),
        [...truth.values()].reduce((sum, count) => sum + count, 0),
      );
    }),
  );
});
