from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regress.profiling.names import short

GELU = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, "
    "at::native::GeluType)::{lambda()#1}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul> >(int, "
    "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&)::{lambda()#1}, std::array<char*, 2ul>)"
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (GELU, "at::native::vectorized_elementwise_kernel"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("kernel(float*, int)", "kernel"),
        ("void (anonymous namespace)::softmax_warp_forward<float, 10, false>(float*, bool)", "softmax_warp_forward"),
        ("std::enable_if<!(false), void>::type gemvx::kernel<int, (bool)1, (5 > 3), 7>(P<int>)", "gemvx::kernel"),
        ("void f<decltype(a->b), 3>(int)", "f"),
        ("void scale<(4 >> 1), float>(float*)", "scale"),
        ("void ns::operator<< <int>(foo)", "ns::operator<<"),
        ("apply<&a::operator()>::run<1>(x)", "apply::run"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_nn_n", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_nn_n"),
        ("", ""),
        ("<", "<"),
    ],
)  # fmt: skip
def test_template_arguments_return_type_and_parameters_go(name: str, expected: str) -> None:
    assert short(name) == expected


@given(st.text(st.sampled_from("ab:<>(){}[],-& *"), max_size=40))
def test_any_text_has_a_short_name_that_is_its_own(name: str) -> None:
    once = short(name)
    assert bool(once) == bool(name)
    if not set(once) & set("<>(){}[]"):
        assert short(once) == once
