/** Further actions behind one button. The browser's popover closes on Escape and on a click elsewhere. */

import { ChevronDown } from 'lucide-react';
import { type KeyboardEvent, useId, useRef } from 'react';
import { Button } from './button.tsx';
import styles from './menu.module.css';

export interface MenuItem {
  readonly label: string;
  readonly isDangerous?: boolean;
  readonly onChoose: () => void;
}

export function Menu(props: { readonly label: string; readonly items: readonly MenuItem[] }) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  if (props.items.length === 0) return null;

  function move(event: KeyboardEvent) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const items = [...(list.current?.querySelectorAll('button') ?? [])];
    const at = items.indexOf(document.activeElement as HTMLButtonElement);
    items.at((at + step) % items.length)?.focus();
  }

  return (
    <>
      <Button popoverTarget={id} aria-haspopup="menu">
        {props.label}
        <ChevronDown size={15} aria-hidden />
      </Button>
      <div
        ref={list}
        id={id}
        popover="auto"
        role="menu"
        tabIndex={-1}
        aria-label={props.label}
        className={styles.list}
        onKeyDown={move}
        onToggle={(event) => {
          if (event.newState === 'open') list.current?.querySelector('button')?.focus();
        }}
      >
        {props.items.map(({ label, isDangerous, onChoose }) => (
          <button
            key={label}
            type="button"
            role="menuitem"
            className={isDangerous ? `${styles.item} ${styles.danger}` : styles.item}
            onClick={() => {
              list.current?.hidePopover();
              onChoose();
            }}
          >
            {label}
          </button>
        ))}
      </div>
    </>
  );
}
