// Without this, the page shows the best plan.
const chooser = document.getElementById("plan");
if (chooser) {
  const show = () => {
    for (const plan of document.querySelectorAll("[data-plan]")) plan.hidden = plan.dataset.plan !== chooser.value;
  };
  chooser.parentElement.hidden = false;
  chooser.addEventListener("change", show);
  show();
}
// A component that is pointed at lights its tasks and its streams, a stream lights both of its ends.
const marked = [...document.querySelectorAll("[data-c]")];
document.addEventListener("mouseover", (event) => {
  const at = event.target.closest("[data-c]");
  const wanted = at ? at.dataset.c.split(" ") : [];
  document.body.classList.toggle("lighting", wanted.length > 0);
  for (const one of marked) {
    const ends = one.dataset.c.split(" ");
    const both = wanted.length > 1 && ends.length > 1;
    one.classList.toggle("lit", both ? one === at : ends.some((name) => wanted.includes(name)));
  }
});
