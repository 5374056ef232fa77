/** A small panel behind a button. The browser closes it on Escape and on a click elsewhere. */

import { ChevronDown } from 'lucide-react';
import { type ReactNode, useId, useState } from 'react';
import { Button } from './button.tsx';
import menu from './menu.module.css';
import styles from './popover.module.css';

export function Popover(props: { readonly label: string; readonly children: ReactNode }) {
  const id = useId();
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button popoverTarget={id}>
        {props.label}
        <ChevronDown size={15} aria-hidden />
      </Button>
      <section
        id={id}
        popover="auto"
        aria-label={props.label}
        className={`${menu.list} ${styles.panel}`}
        onToggle={(event) => setOpen(event.newState === 'open')}
      >
        {isOpen && props.children}
      </section>
    </>
  );
}
