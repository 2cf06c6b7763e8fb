from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regress.traces.names import fills, is_simple, labels, on_tensor_cores, precision, short

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
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_nn>(cutlass_80_simt_sgemm_nn::Params)", "cutlass_80_simt_sgemm_nn"),
        ("void cutlass::device_kernel<a::Gemm<int, b<3>>>(a::Params)", "a::Gemm"),
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


NATIVE = "void at::native::elementwise_kernel<(int)128, void at::native::gpu_kernel_impl<at::native::"


@pytest.mark.parametrize(
    ("alike", "told"),
    [
        (["void f<float>(int)", "void g<float>(int)"], ["f", "g"]),
        (
            [f"{NATIVE}CUDAFunctor_add<c10::Half>>(at::TensorIteratorBase &)::[lambda(int) (instance 1)]>(int, T3)",
             f"{NATIVE}direct_copy_kernel_cuda(at::TensorIteratorBase &)::[lambda() (instance 3)]>(int)>(int, T3)"],
            ["at::native::elementwise_kernel<…CUDAFunctor_add…>", "at::native::elementwise_kernel<…direct_copy_kernel_cuda…>"],
        ),
        (
            ["void v<(int)8, Binary<float, Mul<float>>>(T2)", "void v<(int)8, Unary<float, Mul<float>>>(T2)",
             "void v<(int)8, Gelu>(T3)"],
            ["v<…Binary…Mul…>", "v<…Unary…Mul…>", "v<…Gelu…>"],
        ),
        (["void v<(int)8, Add<float>>(T2)", "void v<(int)4, Add<float>>(T2)", "void v<(int)4, Mul<float>>(T2)"],
         ["v<…8…Add…>", "v<…4…Add…>", "v<…Mul…>"]),
        (["f<int>(a)", "f<float>(a)"], ["f<…int…>", "f<…float…>"]),
        (["g<1>", "g<1,1>"], ["g<1>", "g<1,1>"]),
    ],
)  # fmt: skip
def test_kernels_of_one_short_name_are_told_apart_by_what_they_apply(alike: list[str], told: list[str]) -> None:
    assert [labels(alike)[name] for name in alike] == told
    assert [labels(reversed(alike))[name] for name in alike] == told


@given(st.lists(st.text(st.sampled_from("ab:<>()…, 1"), max_size=12), unique=True, max_size=6))
def test_no_two_kernels_have_one_label(names: list[str]) -> None:
    told = labels(names)
    assert {*told} == {*names}
    assert len({*told.values()}) == len(names)


@pytest.mark.parametrize(
    ("name", "word", "tensor_cores"),
    [
        ("sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32_warpgroupsize1x1x1", "TF32", True),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_nn_n_tilesize128x128x64_warpgroupsize1x1x1", "bfloat16", True),
        ("cutlass_80_tensorop_s1688gemm_128x256_16x3_nn_align4", "TF32", True),
        ("ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_nn", "float16", True),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x128x8_stage3_simt_sgemm", "float32", False),
        ("cutlass_80_simt_sgemm_128x64_8x5_nn_align1", "float32", False),
        ("ampere_dgemm_64x64_nn", "float64", False),
        ("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT", "bfloat16", True),
        ("nvjet_sm90_hsh_128x64_64x8_1x2_h_bz_NNT", "float16", True),
        ("void gelu<c10::Half>(int)", "float16", None),
        ("softmax", "", None),
    ],
)
def test_names_tell_the_precision_and_the_tensor_cores(name: str, word: str, tensor_cores: bool | None) -> None:
    assert (precision(name), on_tensor_cores(name)) == (word, tensor_cores)


def test_names_tell_what_is_simple_and_what_fills() -> None:
    assert is_simple(GELU)
    assert is_simple("void at::native::reduce_kernel<512, 1>(int)")
    assert not is_simple("void cudnn::layer_norm<float>(int)")
    assert fills("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int)")
    assert not fills(GELU)
