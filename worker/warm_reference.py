# SPDX-License-Identifier: Apache-2.0
# A task that calls most of what references call. The warm-up reads this file as text and records it, so that the first
# use of each operation (its schema, its decomposition, its shape function) is paid for by the fork server, not by every job.
import torch
import torch.nn as nn
import torch.nn.functional as F

N = 8


class Model(nn.Module):
    def __init__(self, n, eps=1e-5):
        super().__init__()
        self.convolutions = nn.ModuleList([
            nn.Conv1d(n, n, 3), nn.ConvTranspose1d(n, n, 3), nn.Conv2d(n, n, 3, padding=1, groups=2),
            nn.ConvTranspose2d(n, n, 3), nn.Conv3d(n, n, 3, bias=False), nn.ConvTranspose3d(n, n, 3)])
        self.norms = nn.Sequential(nn.BatchNorm2d(n), nn.InstanceNorm2d(n), nn.GroupNorm(2, n), nn.ReLU(inplace=True))
        self.volume = nn.Sequential(nn.BatchNorm3d(n), nn.MaxPool3d(2), nn.AdaptiveAvgPool3d(1), nn.AvgPool3d(1))
        self.plane = nn.Sequential(nn.MaxPool2d(2), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d((1, 1)), nn.Dropout(0.1))
        self.line = nn.Sequential(nn.MaxPool1d(2), nn.AvgPool1d(2), nn.BatchNorm1d(n))
        self.mlp = nn.Sequential(nn.Linear(n, n), nn.GELU(), nn.LayerNorm(n), nn.Tanh(), nn.Sigmoid(), nn.ReLU6())
        self.embedding = nn.Embedding(n, n)
        self.lstm, self.gru = nn.LSTM(n, n, 1, batch_first=True), nn.GRU(n, n)
        self.attention = nn.MultiheadAttention(n, 2)
        self.weight = nn.Parameter(torch.randn(n, n) * 0.02)
        self.bias = nn.Parameter(torch.zeros(n, 1, 1) + torch.ones(1))
        nn.init.kaiming_normal_(self.weight)
        nn.init.xavier_uniform_(self.weight)
        nn.init.constant_(self.bias, 0.5)
        self.register_buffer("mask", torch.tril(torch.ones(n, n)).view(1, n, n))
        self.rates = [rate.item() for rate in torch.linspace(0, 0.5, 3)]

    def forward(self, x, indices):
        volume = x[:, :, :4, :4, None].expand(-1, -1, -1, -1, 4).contiguous()
        volume = self.convolutions[5](self.convolutions[4](volume))
        volume = self.volume(volume).squeeze(-1).squeeze(-1)
        x = self.convolutions[3](self.convolutions[2](x)) + self.bias
        x = self.norms(x)
        line = self.line(self.convolutions[1](self.convolutions[0](x[:, :, 0])))
        x = self.plane(x)
        y = self.mlp(torch.flatten(x, 1)) @ self.weight
        y = torch.matmul(y, self.weight.t()).unsqueeze(1) + self.embedding(indices)
        y = self.lstm(y)[0].transpose(0, 1) + self.gru(y.transpose(0, 1))[0]
        y = self.attention(y, y, y)[0].permute(1, 0, 2).reshape(y.shape[1], -1, y.shape[2])
        y = F.scaled_dot_product_attention(y, y, y, is_causal=True)
        y = y.masked_fill(self.mask[:, :y.shape[1], :] == 0, float("-inf"))
        y = torch.softmax(y, dim=-1) + F.log_softmax(y, dim=1)
        y = torch.clamp(F.leaky_relu(y, 0.1) * torch.sigmoid(y) - 1, min=-1.0, max=1.0) / 2.0
        y = F.hardtanh(F.mish(F.softplus(F.elu(F.selu(F.silu(y))))) * torch.tanh(y), -1, 1) ** 2
        y = F.hardswish(F.hardsigmoid(y)) + y.mean(dim=1, keepdim=True) - torch.logsumexp(y, dim=2, keepdim=True)
        y = torch.max(y, dim=1, keepdim=True)[0] + torch.min(y, dim=1, keepdim=True).values + y.sum(dim=2, keepdim=True)
        y = F.normalize(torch.cat([y, y], dim=1), dim=1)[:, :4] + torch.stack([y.abs(), y], dim=1).amax(1)
        y = torch.bmm(y, y.transpose(1, 2)) + torch.cumsum(y, dim=1)[:, :, :1] + torch.norm(y) + y.view(-1)[0]
        loss = F.mse_loss(y, y.detach()) + F.cross_entropy(line.mean(2), indices[:, 0]) + torch.sqrt(torch.exp(y)).var()
        return y, volume, loss, torch.argmax(y, dim=1)


def get_inputs():
    return [torch.rand(2, N, 16, 16), torch.randint(0, N, (2, 4))]


def get_init_inputs():
    return [N]
