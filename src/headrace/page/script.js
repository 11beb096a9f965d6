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
