/** An expression in words and its next fire times, in its time zone and in the viewer's, while it is typed. */

import { useRead } from '../../api/read.ts';
import { messageOf } from '../../components/error-box.tsx';
import { Time } from '../../components/time.tsx';
import { formatLocal, formatZoned } from '../../lib/format.ts';
import { zoneHere } from '../../lib/local-time.ts';
import { useRested } from '../../lib/rested.ts';
import { cronWords } from './cron-words.ts';

export function FirePreview(props: { readonly expression: string; readonly timezone: string }) {
  const cron_expr = useRested(props.expression);
  const timezone = useRested(props.timezone);
  const isGiven = cron_expr.trim() !== '' && timezone.trim() !== '';
  const isZoneHere = timezone === zoneHere();
  const preview = useRead('cron.preview', [{ cron_expr, timezone }], {
    enabled: isGiven,
    // The previous answer stays until the next one arrives, so that the layout does not jump.
    keepsBefore: true,
  });
  const { data, error } = preview;
  return (
    <section aria-live="polite">
      <p>{cronWords(props.expression)}</p>
      <h3>Next runs</h3>
      {!isGiven ? (
        <p className="dim">Enter an expression to see them.</p>
      ) : error !== null ? (
        <p className="small">{messageOf(error)}</p>
      ) : data === undefined ? (
        <p className="dim">Loading</p>
      ) : (
        <ul>
          {data.fires.map(({ at, local }) => (
            <li key={at} className="numbers">
              {formatZoned(local)}
              {!isZoneHere && <span className="dim"> · here {formatLocal(new Date(at))}</span>}{' '}
              <Time at={at} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
