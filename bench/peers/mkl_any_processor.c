// Loaded before PyTorch. The MKL inside asks this whether it runs on its maker's processor, and on any other leaves the
// widest vectors unused: a third of the rate, where this makes the difference.
int mkl_serv_intel_cpu_true(void) { return 1; }
