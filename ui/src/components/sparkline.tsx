/** Counts over time as small bars in a line of text or a cell. */

import styles from './sparkline.module.css';

const BAR = 3;
const GAP = 1;
const HEIGHT = 20;
/** A single failure stays visible beside a burst. */
const HEIGHT_MIN = 2;

/** @param props.label describes the counts, for screen readers */
export function Sparkline(props: { readonly counts: readonly number[]; readonly label: string }) {
  const { counts, label } = props;
  const most = Math.max(1, ...counts);
  const width = counts.length * (BAR + GAP) - GAP;
  return (
    <svg
      className={styles.line}
      role="img"
      aria-label={label}
      viewBox={`0 0 ${width} ${HEIGHT}`}
      width={width}
      height={HEIGHT}
    >
      {counts.map((count, at) => {
        const height = count === 0 ? 1 : Math.max(HEIGHT_MIN, (count / most) * HEIGHT);
        return (
          <rect
            // biome-ignore lint/suspicious/noArrayIndexKey: a bar is its place
            key={at}
            className={count === 0 ? styles.none : styles.bar}
            x={at * (BAR + GAP)}
            y={HEIGHT - height}
            width={BAR}
            height={height}
          />
        );
      })}
    </svg>
  );
}
